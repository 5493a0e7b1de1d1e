// Folds gradients over lanes and ranks while backward computes them: in a step of lanes, or in any backward pass.
//
// A gradient's way, which reducer.cc follows downwards:
//   hook      backward has accumulated a parameter's gradient in .grad; the hook takes it out
//             (gradients/gradient_hooks.h)
//   lane sum  the gradient is added to those of this rank's other lanes (gradients/lane_sum.h)
//   bucket    after the last lane, the sum goes into the parameter's bucket (bucket.h)
//   launch    the fold of a full bucket over the ranks begins (bucket_queue.h); later hooks move it on
//   .grad     finish() waits for all folds and installs the sums, held if they have a loss scale in them
//
// A backward pass by hand is a step of one lane, which begins with the pass's first gradient and ends with the pass
// (gradients/joint_finish.h). As in PyTorch its gradients add to those in .grad, and what is in .grad is folded.
//
// Four exceptions have a class each under gradients/. UnusedParameters tells which parameters a loss does not reach;
// they add +0. StaticGraph knows how many gradients each parameter gets. SparseGradients keeps rows, which are in no
// bucket. LowPrecisionGradients takes 16-bit gradients before backward casts them to fp32, straight into the bucket,
// where the ranks share memory and each computes one lane.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/late_number.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/bucket_queue.h"
#include "lockstep/parallel/ddp_options.h"
#include "lockstep/parallel/gradients/gradient_hooks.h"
#include "lockstep/parallel/gradients/lane_sum.h"
#include "lockstep/parallel/gradients/low_precision_gradients.h"
#include "lockstep/parallel/gradients/named_parameter.h"
#include "lockstep/parallel/gradients/sparse_gradients.h"
#include "lockstep/parallel/gradients/static_graph.h"
#include "lockstep/parallel/gradients/unused_parameters.h"
#include "lockstep/parallel/installed_gradients.h"
#include "lockstep/parallel/leftover_gradients.h"

namespace lockstep::parallel {

// A backward pass by hand.
struct PassSettings {
  double scale = 1;      // multiplies this rank's gradients before they are folded: its loss is a mean over one rank
  bool delayed = false;  // as in StepSettings: another reducer's pass may be a part of the same backward
  uint32_t order = 0;    // among the passes that end with one backward, the same on all ranks
};

// The surroundings of backward passes by hand.
struct ByHand {
  // Called at the gradients of a pass that is not begun, on backward's thread. Returns nothing if the pass is not
  // folded: autograd then accumulates as it does without a reducer.
  std::function<std::optional<PassSettings>()> begin = [] { return std::nullopt; };
  std::function<void()> end = [] {};  // called after the fold
};

struct StepSettings {
  // No bucket is launched before finish(): where several reducers take part, a rank may not know in which order
  // backward reaches their parameters on others, for it has no samples, or does not use all of them.
  bool delayed = false;
  double loss_scale = 1;  // the factor of the losses (GradBucket)
  int loss_id = InstalledGradients::kNoLoss;
  int64_t number = kNoNumber;
  static constexpr int64_t kNoNumber = InstalledGradients::kNoNumber;
};

// Called by the thread that runs the step. Its hooks run on whatever threads autograd runs backward on.
class Reducer {
 public:
  // `parameters`: in the order of registration; those that require no gradient, and second names of one, are left out.
  // The communicator outlives the reducer. Throws ConfigError for options that do not go together, and for a parameter
  // with another post-accumulate-grad hook. Hooks of another reducer are replaced.
  Reducer(const std::vector<NamedParameter>& parameters, comm::Communicator& comm, const DdpOptions& options = {},
          ByHand by_hand = {});
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // Begins a step in which this rank computes `lanes` lanes. Of what is in .grad:
  //   - the gradients of an earlier fold are dropped if the parameter has been updated since, or if they are all 0.
  //     Those of a step of the same number are added to, finite or not (several losses of one step). Of another step,
  //     those that are not finite are dropped, and others are a ConfigError
  //   - the mean over ranks of any others, such as those of no_sync() or set by hand, is added
  void begin_step(size_t lanes, const StepSettings& settings = {});
  // The names of parameters with gradients of the latter kind, which all ranks must have alike.
  std::vector<std::string> local_gradients() const;
  // Selects the lane that the next gradients belong to. Any thread, while no lane's backward runs; those of other lanes
  // may be suspended (lane_turns.h).
  void set_lane(size_t lane) { step_.lane = lane; }
  // Makes the step under way a delayed one (StepSettings), before its first bucket is full.
  void delay() { step_.delayed = true; }
  // Begins a backward pass by hand, which finish_pass() ends, rather than by itself at its first gradient.
  void begin_pass(const PassSettings& settings);
  // Ends a pass: parameters without a gradient in it fold what is in .grad, or +0 where the options ask for that.
  // Throws as finish(). A collective.
  void finish_pass();

  // Prepares for the backward of `loss`, the selected lane's or pass's. Parameters that the loss does not reach add +0
  // where the options ask for that, unless a pass by hand finds a gradient from before in their .grad.
  void expect(const at::Tensor& loss);
  // In place of a backward: copies the selected lane's gradients, one for each trained parameter, in their order.
  void give(const std::vector<at::Tensor>& gradients);
  // Called after a lane's backward: where the options ask for it, parameters that got no gradient add +0.
  void end_lane();
  // Adds +0 for every parameter. Called in place of the forward and backward of a lane without samples.
  void empty_lane();
  // Called after the last backward: waits until every gradient is folded, and installs the sums as .grad. Throws
  // ConfigError that names the parameters without a gradient, and what Communicator throws. A collective.
  void finish();

  // Called when the step has failed: forgets its gradients. Every .grad becomes undefined.
  void drop() noexcept;

  // After finish(): the sum of squares of the folded gradients, in block order, equal at any number of ranks. It is
  // finite if and only if all of them are. Reading it may wait for a GPU; it is read while the communicator lives.
  LateNumber square_sum() const { return square_sum_; }
  // After finish() with a hook that divides: `square_sum` is that of all ranks together.
  void end_divided(double square_sum);
  bool has_sparse() const { return !sparse_.empty(); }  // whether gradients may be sparse
  // After finish(): as BucketQueue::overflow(), of all gradients; undefined where some are sparse.
  at::Tensor overflow() const { return sparse_.empty() ? buckets_.overflow() : at::Tensor(); }

  // After finish(): the name of the first parameter, in backward's order, whose folded gradient is not finite. Empty if
  // all are finite.
  std::string first_not_finite() const;

  size_t buckets() const { return buckets_.size(); }
  BucketLog log(size_t bucket) const { return buckets_.log(bucket); }  // of the last step
  size_t walks() const { return unused_.walks(); }  // over graphs, in search of unused parameters, since construction

 private:
  // The step under way: of lanes, or a pass by hand, which is one lane.
  struct Step {
    bool active = false;
    bool by_hand = false;
    std::weak_ptr<const bool> pass = {};  // of a pass that began by itself: gone when its backward call is over
    bool by_itself = false;
    bool delayed = false;
    int64_t number = StepSettings::kNoNumber;
    double loss_scale = 1;
    int loss_id = InstalledGradients::kNoLoss;
    size_t lanes = 1;         // of this rank
    size_t lane = 0;          // the selected one
    double scale = 1;         // multiplies this rank's sums before they are folded
    double leaf_scale = 1;    // multiplies each lane's gradients before they are added
    double multiply = 1;      // multiplies the folded sums
    std::vector<bool> ready;  // by parameter: this rank's sum is complete
  };

  void begin(Step step);
  void predivide(Step& step) const;
  bool begin_by_itself();
  void finish_by_itself();
  void fail(const std::string& why) noexcept;
  void clear_gradients() noexcept;
  void add_unreached(size_t index);
  void add_zero(size_t index);
  bool may_lack() const;
  at::Tensor take_rest(size_t index);  // what a static graph's lane has kept of a parameter's gradients
  void use(size_t index);              // counts a gradient from before
  bool has_given(size_t index) const;

  // A gradient's way.
  void on_gradient(size_t index);
  void accept(size_t index);
  void take(size_t index, at::Tensor gradient);
  bool adds_local(size_t index) const;
  void add_rows(size_t index, at::Tensor gradient);
  bool take_low_precision(size_t index, const at::Tensor& gradient);
  void add_to_lanes(size_t index, at::Tensor gradient);
  void put_in_bucket(size_t index, at::Tensor sum);
  void launch_full(size_t index);
  void install(std::vector<at::Tensor> gradients);

  void refuse_given() const;
  void check_allowed() const;
  void check_first(size_t index) const;
  [[noreturn]] void refuse_missing() const;

  std::mutex mutex_;  // hooks of a GPU's and of the CPU's parameters run on different threads
  comm::Communicator& comm_;
  DdpOptions options_;
  ByHand by_hand_;
  std::vector<NamedParameter> parameters_;
  std::vector<NamedParameter> frozen_;  // that required no gradient at construction: one is an error
  std::vector<NamedParameter> folded_;  // the same, real views of complex ones
  std::vector<LaneSum> lane_sums_;      // by parameter
  InstalledGradients installed_;        // by the last finish()
  LeftoverGradients leftovers_;         // local ones are divided by the number of ranks
  BucketQueue buckets_;
  Step step_;
  LateNumber square_sum_;

  UnusedParameters unused_;
  std::optional<StaticGraph> static_graph_;
  SparseGradients sparse_;
  std::optional<LowPrecisionGradients> low_precision_;  // where they can be folded before their cast
  GradientHooks hooks_;
};

}  // namespace lockstep::parallel
