// Folds gradients over lanes and ranks while backward computes them.
//
// A gradient's way, which reducer.cc follows downwards:
//   hook      backward has accumulated a parameter's gradient in .grad; the hook takes it out
//   lane sum  the gradient is added to those of this rank's other lanes (gradients/lane_sum.h)
//   bucket    after the last lane, the sum goes into the parameter's bucket (bucket.h)
//   launch    the fold of a full bucket over the ranks begins (bucket_queue.h); later hooks move it on
//   .grad     finish() waits for all folds and installs the sums
//
// Three exceptions have a class each under gradients/. UnusedParameters tells which parameters a loss does not reach;
// they add +0. SparseGradients keeps rows, which are in no bucket. LowPrecisionGradients takes 16-bit gradients before
// backward casts them to fp32, straight into the bucket, where the ranks share memory and each computes one lane.
#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/bucket_queue.h"
#include "lockstep/parallel/ddp_options.h"
#include "lockstep/parallel/gradients/lane_sum.h"
#include "lockstep/parallel/gradients/low_precision_gradients.h"
#include "lockstep/parallel/gradients/named_parameter.h"
#include "lockstep/parallel/gradients/sparse_gradients.h"
#include "lockstep/parallel/gradients/unused_parameters.h"

namespace lockstep::parallel {

// Called by the thread that runs the step. Its hooks run on whatever threads autograd runs backward on.
class Reducer {
 public:
  // `parameters`: in the order of registration; those that require no gradient, and second names of one, are left out.
  // The communicator outlives the reducer. Throws ConfigError for options that do not go together, and for a parameter
  // with another post-accumulate-grad hook. Hooks of another reducer are replaced.
  Reducer(std::vector<NamedParameter> parameters, comm::Communicator& comm, const DdpOptions& options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // Begins a step in which this rank computes `lanes` lanes. Every .grad becomes undefined.
  void begin_step(size_t lanes);
  // Selects the lane that the next gradients belong to. Any thread, while no lane's backward runs; those of other lanes
  // may be suspended (lane_turns.h).
  void set_lane(size_t lane) { step_.lane = lane; }
  // Begins a backward pass of a hand-driven loop. Passes add up until one is the last, in which gradients are folded.
  // With the last one, this rank's sum is multiplied by `scale` before it is folded: a hand-driven loss is a mean over
  // one rank's samples.
  void begin_pass(bool last, double scale = 1);
  bool open() const { return step_.active; }  // whether a step is begun and not finished

  // Prepares for the backward of `loss`, the selected lane's or pass's. Parameters that the loss does not reach add +0
  // where the options ask for that.
  void expect(const at::Tensor& loss);
  // Adds +0 for every parameter. Called in place of the forward and backward of a lane without samples.
  void empty_lane();
  // Called after the last backward: waits until every gradient is folded, and installs the sums as .grad. Throws
  // ConfigError that names the parameters without a gradient, and what Communicator throws. A collective.
  void finish();

  // Called when the step has failed: forgets its gradients. Every .grad becomes undefined.
  void drop() noexcept;

  // After finish(): the sum of squares of the folded gradients, in block order, equal at any number of ranks. It is
  // finite if and only if all of them are.
  double square_sum() const { return square_sum_; }

  // After finish(): the name of the first parameter, in backward's order, whose folded gradient is not finite. Empty if
  // all are finite.
  std::string first_not_finite() const;

  size_t buckets() const { return buckets_.size(); }
  const BucketLog& log(size_t bucket) const { return buckets_.log(bucket); }  // of the last step

 private:
  class Hook;

  // The step under way: of lanes whose number is known, or of hand-driven passes.
  struct Step {
    bool active = false;      // hooks do nothing while a model is used outside of steps
    bool by_hand = false;     // lanes are passes, and `lanes` counts those so far
    bool last_pass = false;   // by hand: gradients are folded in this pass
    size_t lanes = 0;         // of this rank
    size_t lane = 0;          // the selected one
    double scale = 1;         // multiplies this rank's sums
    std::vector<bool> ready;  // by parameter: this rank's sum is complete
  };

  void install_hooks();
  void begin(Step step);
  void clear_gradients() noexcept;
  void add_zero(size_t index);

  // A gradient's way.
  void on_gradient(size_t index);
  void add_rows(size_t index, const at::Tensor& gradient);
  bool take_low_precision(size_t index, const at::Tensor& gradient);
  void add_to_lanes(size_t index, at::Tensor gradient);
  void put_in_bucket(size_t index, at::Tensor sum);
  void launch_full(size_t index);
  void install(std::vector<at::Tensor> gradients);

  bool was_last(size_t lanes) const;
  void check_allowed(size_t index) const;
  void check_first(size_t index) const;
  [[noreturn]] void refuse_missing() const;

  std::mutex mutex_;  // hooks of a GPU's and of the CPU's parameters run on different threads
  comm::Communicator& comm_;
  DdpOptions options_;
  std::vector<NamedParameter> parameters_;  // each with a hook
  std::vector<LaneSum> lane_sums_;          // by parameter
  BucketQueue buckets_;
  Step step_;
  double square_sum_ = 0;

  UnusedParameters unused_;
  SparseGradients sparse_;
  std::optional<LowPrecisionGradients> low_precision_;  // where they can be folded before their cast
};

}  // namespace lockstep::parallel
