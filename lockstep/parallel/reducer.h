// Folds gradients over lanes and ranks while backward computes them.
//
// A hook runs as soon as backward has accumulated a parameter's gradient. In every lane but this rank's last it moves
// the gradient into the parameter's LaneSum; in the last lane it makes .grad the sum over this rank's lanes, and when
// all of a bucket's parameters are there, hands the bucket to the communicator, whose other folds each hook moves on.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/bucket_plan.h"
#include "lockstep/parallel/gradients.h"

namespace lockstep::parallel {

struct NamedParameter {
  std::string name;
  at::Tensor tensor;
};

class Reducer {
 public:
  // Parameters in the order of registration; those that require no gradient are left out. The communicator outlives it.
  Reducer(std::vector<NamedParameter> parameters, comm::Communicator& comm, const BucketOptions& options);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // Before the backward of a lane; .grad becomes undefined. `last`: the last of this rank's in the step, whose backward
  // ends in the fold.
  void begin_lane(bool last);
  // Instead of a lane's forward and backward where the lane has no samples: it adds +0.
  void empty_lane(bool last);
  // After the backward of the last lane: waits until every gradient is folded. Throws ConfigError that names the
  // parameters that got no gradient, and what Communicator throws.
  void finish();

  // Backward has thrown: what was collected in this step is dropped.
  void drop() noexcept;

  // Of the folded gradients, after finish(): the sum of squares, in block order, equal at any number of ranks; not
  // finite if and only if some element isn't.
  double square_sum() const { return square_sum_; }

  // The name of the first parameter, in backward's order, whose folded gradient is not finite; empty if all are.
  std::string first_not_finite() const;

  // Gradients are multiplied by this before they are folded (1: not at all). For hand-driven loops, whose losses are
  // means over a rank's own samples.
  void set_scale(double scale) { scale_ = scale; }

  size_t buckets() const { return buckets_.size(); }

 private:
  class Hook;
  struct Parameter {
    std::string name;
    at::Tensor tensor;
    size_t bucket = 0;
    LaneSum lanes;
    std::optional<at::ScalarType> wire;
    bool ready = false;
  };
  struct Bucket {
    std::vector<size_t> members;
    size_t missing = 0;
    std::string label;
    at::Tensor square_sums;  // a part of square_sums_
    std::shared_ptr<comm::Work> work;
  };

  void on_gradient(size_t index);
  void add_lane(Parameter& parameter, at::Tensor gradient);
  void launch_filled();
  [[noreturn]] void refuse_unused() const;

  comm::Communicator& comm_;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  at::Tensor square_sums_;  // fp64, one for each block of each parameter, in bucket order
  size_t launched_ = 0;     // buckets handed over, in order
  double scale_ = 1;
  double square_sum_ = 0;
  bool active_ = false;  // hooks do nothing while a model is used outside of steps
  bool last_ = false;
};

}  // namespace lockstep::parallel
