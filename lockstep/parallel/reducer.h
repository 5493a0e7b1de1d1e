// Folds gradients over lanes and ranks while backward computes them.
//
// A hook runs as soon as backward has accumulated a parameter's gradient. It moves the gradient into the parameter's
// LaneSum; when all of this rank's lanes are in there, .grad becomes their sum, and when all of a bucket's parameters
// have theirs, the bucket (bucket.h) goes out. Each hook also moves the buckets on that are under way.
//
// Where autocast has cast a weight, backward ends with a cast of its gradient to fp32. Over shared memory, with one
// lane a rank, a hook before that cast takes the gradient as it is: the fold reads half the bytes, and the cast is
// spared.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/bucket.h"
#include "lockstep/parallel/cast_hooks.h"
#include "lockstep/parallel/ddp_options.h"
#include "lockstep/parallel/gradients.h"
#include "lockstep/parallel/sparse_fold.h"

namespace lockstep::parallel {

struct NamedParameter {
  std::string name;
  at::Tensor tensor;
  bool sparse = false;  // its gradients are: of Embedding with sparse(true)
};

class Reducer {
 public:
  // Parameters in the order of registration; those that require no gradient are left out, and one that stands there
  // twice is taken once. The communicator outlives it. Throws ConfigError for options that do not go together.
  Reducer(std::vector<NamedParameter> parameters, comm::Communicator& comm, const DdpOptions& options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // A step whose lanes, on this rank so many, are known. .grad become undefined.
  void begin_step(size_t lanes);
  // Whose backward goes on from here, on whatever thread.
  void set_lane(size_t lane) { lane_ = lane; }
  // A pass by hand, which adds to those before it; `last`: gradients go out in its backward.
  void begin_pass(bool last);
  bool open() const { return active_; }  // begun, and not finished

  // Before the backward of a lane or pass: hooks the casts of weights, and with find_unused_parameters, what its loss
  // does not depend on adds +0.
  void expect(const at::Tensor& loss);
  // Instead of a lane's forward and backward where the lane has no samples: it adds +0.
  void empty_lane();
  // After the last backward: waits until every gradient is folded. Throws ConfigError that names the parameters that
  // got no gradient, and what Communicator throws.
  void finish();

  // Backward has thrown: what was collected in this step is dropped.
  void drop() noexcept;

  // Of the folded gradients, after finish(): the sum of squares, in block order, equal at any number of ranks; not
  // finite if and only if some element isn't.
  double square_sum() const { return square_sum_; }

  // The name of the first parameter, in backward's order, whose folded gradient is not finite; empty if all are.
  std::string first_not_finite() const;

  // The sum of a rank's gradients is multiplied by this before it is folded (1: not at all). For hand-driven loops,
  // whose losses are means over a rank's own samples.
  void set_scale(double scale) { scale_ = scale; }

  size_t buckets() const { return buckets_.size(); }
  const BucketLog& log(size_t bucket) const { return buckets_[bucket].log(); }  // of the last step

 private:
  class Hook;
  struct Parameter {
    std::string name;
    at::Tensor tensor;
    bool sparse = false;
    size_t bucket = 0, member = 0;
    LaneSum lanes = LaneSum();
    std::map<size_t, SparseRows> rows = {};  // of a sparse one, by lane
    bool ready = false;
    bool uncast = false;  // its gradient was taken before the cast; what is accumulated after that is nothing
    double used = 0;      // lanes of this rank whose loss depends on it, in this step
    bool never = false;   // static_graph: no lane of any rank does
  };

  void add_parameter(NamedParameter parameter);
  void make_buckets();
  void begin();
  void on_gradient(size_t index);
  bool on_uncast(size_t index, const at::Tensor& gradient);
  void hook_casts(const at::Tensor& loss) const;
  std::vector<at::Tensor> tensors() const;  // of the parameters
  void check_taken(size_t index) const;
  void put(Parameter& parameter, at::Tensor grad);
  void give(Parameter& parameter, at::Tensor gradient);
  void give_rows(Parameter& parameter, SparseRows rows);
  void give_zero(size_t index);
  bool has_all_lanes(const Parameter& parameter) const;
  void complete(Parameter& parameter);
  void forget(Parameter& parameter) const;
  void launch_filled();
  void finish_sparse();
  void forget_unused();
  void add_square_sums();
  std::vector<bool> reached_by(const at::Tensor& loss);
  bool reached_at_first(size_t index) const;
  bool walks() const { return options_.find_unused_parameters || (options_.static_graph && !known_); }
  [[noreturn]] void refuse_unused() const;

  std::mutex mutex_;
  comm::Communicator& comm_;
  DdpOptions options_;
  std::optional<at::ScalarType> wire_;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<std::vector<size_t>> members_;  // of each bucket
  std::vector<size_t> sparse_;
  bool takes_uncast_ = false;  // gradients before their cast, where each comes from one lane
  std::shared_ptr<const TakeUncast> take_uncast_ = std::make_shared<TakeUncast>(
      [this](size_t index, const at::Tensor& gradient) { return on_uncast(index, gradient); });
  at::Tensor square_sums_;  // fp64, one for each block of each parameter, in bucket order
  size_t launched_ = 0;     // buckets handed over, in order
  double scale_ = 1;
  double square_sum_ = 0;
  bool active_ = false;  // hooks do nothing while a model is used outside of steps
  bool by_hand_ = false;
  bool closing_ = false;  // by hand: the last pass
  size_t lanes_ = 0;
  size_t lane_ = 0;
  bool known_ = false;                      // static_graph: the first step is over
  std::vector<std::vector<bool>> reached_;  // static_graph: by lane, in the first step
};

}  // namespace lockstep::parallel
