// Data parallelism: every rank holds the model and computes its own lanes of the global batch, and all ranks apply the
// same gradient (Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", VLDB 2020).
//
// run() does a step. For each of this rank's lanes it keys the random numbers, the user's function returns the lane's
// loss (a mean over the lane's samples), and backward folds the gradients over all lanes. Then .grad is the gradient of
// the mean loss over the global batch.
//
// A loop by hand, as with PyTorch, calls forward and loss.backward() itself. A pass adds its gradients to those in
// .grad and folds what is there: then .grad is the mean over ranks. Under no_sync() gradients only add up, until a pass
// folds them. In join(), ranks may run out of data before others do.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/late_number.h"
#include "lockstep/parallel/buffer_keeper.h"
#include "lockstep/parallel/comm_log.h"
#include "lockstep/parallel/ddp_options.h"
#include "lockstep/parallel/lane_generators.h"
#include "lockstep/parallel/lane_graph.h"
#include "lockstep/parallel/lane_losses.h"
#include "lockstep/parallel/loss_scale.h"
#include "lockstep/parallel/outside_leaves.h"
#include "lockstep/parallel/reducer.h"
#include "lockstep/parallel/sync_batch_norm.h"
#include "lockstep/parallel/wrapped_networks.h"
#include "lockstep/world/world.h"

namespace lockstep::parallel {

// One global batch: the lanes that this rank computes, and the weight of each.
struct StepPlan {
  struct Lane {
    int index = 0;        // the lane's number over all ranks
    int64_t samples = 0;  // 0: an empty lane of a ragged last batch
  };
  int64_t number = 0;       // the step's number, from the start of the run
  int64_t samples = 0;      // of the global batch
  std::vector<Lane> lanes;  // this rank's, as World::own_lanes() numbers them
  uint64_t order_hash = 0;  // tells the samples' order, and the place in it, from others; 0: unknown
};

// The results of a step, equal on all ranks and at any number of ranks. Of one rank's step on a GPU the first two are
// read when somebody asks for them, and wait for the GPU then: MixedPrecision::step() queues the update before.
struct StepResult {
  LateNumber loss;        // mean over the global batch
  LateNumber square_sum;  // of the folded gradients, with the loss scale in them; finite iff all of them are
  double decision = 0;    // the value that rank 0 passed to run()
  double others = 0;      // the values that the other ranks passed, added up
  double loss_scale = 1;  // the factor of the losses, which is in the gradients
  static constexpr int kNoLoss = amp::FoldedGradients::kNoLoss;
  int loss_id = kNoLoss;  // of MixedPrecision's losses
  int64_t gradients = 0;  // how many parameters have one
  uint64_t run = 0;       // differs from that of every other run of the process
  at::Tensor overflow;    // amp::FoldedGradients'; so are the marks
  std::optional<amp::GradientMarks> marks = {};
  std::shared_ptr<const std::unordered_set<const c10::TensorImpl*>> passed_by = {};  // amp::FoldedGradients'
  amp::Coverage coverage = amp::Coverage::kThese;  // kLess: of parts of weights (parallel/tensor)

  operator amp::FoldedGradients() const {
    return {.square_sum = square_sum,
            .loss_scale = loss_scale,
            .loss_id = loss_id,
            .gradients = gradients,
            .run = run,
            .coverage = coverage,
            .overflow = overflow,
            .marks = marks,
            .passed_by = passed_by};
  }
};

struct JoinOptions {
  bool divide_by_initial_world_size = true;  // false: gradients are divided by the number of ranks that still have data
  bool throw_on_early_termination = false;   // the first rank to run out of data ends the loop on all ranks
};

// Used by one thread. Within the function that run() calls, another step or backward pass of the world is a
// ConfigError.
class DistributedDataParallel {
 public:
  // Checks that all ranks hold the same model, and gives them rank 0's parameters, with the fp32 masters of those that
  // have some, and buffers. An optimizer that keeps masters does so on all ranks. A collective. Throws
  // ConfigError that names the first difference and its rank. A module that is wrapped anew belongs to the later
  // wrapper: from then on run(), backward() and join() of the earlier one throw ConfigError.
  DistributedDataParallel(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<World> world,
                          const DdpOptions& options = {});
  ~DistributedDataParallel();

  // Runs one step. `loss_of(i)` computes the loss of lanes[i], a scalar with a graph; it is not called for an empty
  // lane. `loss_scale` multiplies the losses before backward. `decision`: rank 0's value reaches all ranks in the
  // result, and the sum of the others'. Several runs of one number add up, as losses of one step, and each draws its
  // own random numbers. A loop calls zero_grad() after its update: other gradients that are left are an error, unless
  // the parameters' versions show the update. So are weights that differ between ranks. A collective. If anything
  // throws, all ranks are told, .grad is left undefined, and buffers are as before; what a lane threw names step and
  // lane (lane_errors.h).
  //
  // Gradients of another loss scale than 1 are held (optim/held_gradient.h) until amp::MixedPrecision::step takes the
  // scale out. Throws ConfigError for a network in mixed precision if the scale is none of its own.
  StepResult run(const StepPlan& step, const std::function<at::Tensor(size_t lane)>& loss_of, double loss_scale = 1,
                 double decision = 0);
  // The same in mixed precision: every lane is run in its autocast, and the loss of this loss_id is multiplied by its
  // scale. Throws ConfigError for a network that was not given to `mixed`.
  StepResult run(const StepPlan& step, const std::function<at::Tensor(size_t lane)>& loss_of,
                 const amp::MixedPrecision& mixed, int loss_id = 0, double decision = 0) {
    return run_together({this}, step, loss_of, mixed, loss_id, decision);
  }

  // The same for several wrapped networks of one world, which one loss reaches: all of them are folded. The result's
  // square sum is that of all. The first one's options say how dropout is keyed. Throws ConfigError for one that is
  // given twice.
  static StepResult run_together(const std::vector<DistributedDataParallel*>& networks, const StepPlan& step,
                                 const std::function<at::Tensor(size_t lane)>& loss_of, double loss_scale = 1,
                                 double decision = 0);
  static StepResult run_together(const std::vector<DistributedDataParallel*>& networks, const StepPlan& step,
                                 const std::function<at::Tensor(size_t lane)>& loss_of,
                                 const amp::MixedPrecision& mixed, int loss_id = 0, double decision = 0);

  // The same for a batch that knows its lanes, such as data::Loader's: it has global_samples, and lanes with their
  // number `lane` and size(). `loss_of(lane)` gets the lane itself. `number`: the step's, from the start of the run.
  template <typename Batch, typename LossOf>
  StepResult run(int64_t number, const Batch& batch, LossOf&& loss_of, double loss_scale = 1, double decision = 0) {
    return run(
        plan_of(number, batch), [&](size_t i) { return loss_of(batch.lanes[i]); }, loss_scale, decision);
  }
  template <typename Batch, typename LossOf>
  StepResult run(int64_t number, const Batch& batch, LossOf&& loss_of, const amp::MixedPrecision& mixed,
                 int loss_id = 0, double decision = 0) {
    return run(
        plan_of(number, batch), [&](size_t i) { return loss_of(batch.lanes[i]); }, mixed, loss_id, decision);
  }
  template <typename Batch>
  static StepPlan plan_of(int64_t number, const Batch& batch) {
    StepPlan step{.number = number, .samples = batch.global_samples, .lanes = {}};
    for (const auto& lane : batch.lanes) step.lanes.push_back({lane.lane, lane.size()});
    if constexpr (requires { requires std::same_as<std::remove_cvref_t<decltype(batch.order_hash)>, uint64_t>; }) {
      step.order_hash = batch.order_hash;
    }
    return step;
  }

  // Makes backward passes only add up on this rank as long as the returned scope exists. A pass's forward may come
  // before it.
  class NoSync {
   public:
    explicit NoSync(DistributedDataParallel& ddp) : ddp_(ddp) { ++ddp_.no_sync_; }
    ~NoSync() { --ddp_.no_sync_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DistributedDataParallel& ddp_;
  };
  [[nodiscard]] NoSync no_sync() { return NoSync(*this); }
  // Runs loss.backward(), which is a collective outside of no_sync(); `loss` is a mean over this rank's samples. Unlike
  // that call by itself, this one knows the loss beforehand: with find_unused_parameters it tells the parameters that
  // the loss does not reach from the start. If anything throws, all ranks are told; loss.backward() itself tells them
  // of our errors alone, not of those of the user's hooks.
  void backward(const at::Tensor& loss);
  // Runs `loop`, a hand-driven loop whose number of steps may differ between ranks. A rank whose loop has ended takes
  // part in the others' folds with +0 until all have ended. Then every rank gets the weights, their fp32 masters and
  // the buffers of the rank that made most steps, but not its optimizer's state. The loop may make no other
  // collectives, such as those of ShardedOptimizer. A collective. Throws ConfigError on all ranks if one has run out of
  // data and throw_on_early_termination is set.
  void join(const std::function<void()>& loop, const JoinOptions& options = {});

  // Gives all ranks rank 0's buffers, as run() and every pass that folds do at their ends. To be called where a forward
  // outside of them has changed buffers. A collective.
  void sync_buffers() {
    BufferKeeper::Taken taken;
    buffers_.mark_changed();
    buffers_.sync(world_->communicator(), taken);
  }

  // Whether all ranks are to have the same weights, as run() has found them in some elements: not of passes by hand,
  // divided weights, or those that each rank was wrapped with.
  bool has_divided_weights() const { return has_parts_; }  // of which each rank has a part
  bool has_equal_weights() const { return options_.broadcast_state && !has_parts_ && has_run_; }
  // Whether the weights' bits do not depend on the number of ranks.
  bool same_bits() const;
  CommLog comm_log() const { return comm_log_of(reducer_); }  // of the last step

  torch::nn::Module& module() const { return *module_; }
  World& world() const { return *world_; }
  const Reducer& reducer() const { return reducer_; }
  bool keeps_threads() const { return options_.keep_threads; }
  // The module's zero_grad() for what is trained here. libtorch's takes 3 us a parameter to detach gradients that it
  // drops.
  void zero_grad() const {
    for (const at::Tensor& weight : weights_->all()) weight.mutable_grad().reset();
  }
  // The recording of this rank's lanes; null without DdpOptions::device_graph, and where lanes are not recorded.
  const LaneGraph* lane_graph() const { return graph_.get(); }
  // Call it where the function of run() is about to use other memory than before.
  void forget_recording() {
    if (graph_) graph_->forget();
  }
  // Call it before the GPU computes much else, such as an evaluation: a recording keeps the activations' memory, and is
  // forgotten where too little is left.
  void make_room() {
    if (graph_) graph_->make_room();
  }
  const std::shared_ptr<CommHook>& comm_hook() const { return options_.comm_hook; }  // null without one

 private:
  void check_usable(const char* call) const;
  std::string name_of(const StepPlan& step) const;  // for messages: "step 3"
  static StepResult run_all(const std::vector<DistributedDataParallel*>& networks, const StepPlan& step,
                            const std::function<at::Tensor(size_t)>& loss_of, const LossScale& scale, double decision);
  StepResult run_with(const std::vector<DistributedDataParallel*>& networks, const StepPlan& step,
                      const std::function<at::Tensor(size_t)>& loss_of, const LossScale& scale, double decision);
  bool divides() const { return options_.comm_hook != nullptr && options_.comm_hook->divides(); }
  void drop_gradients_of_others() const;
  void add_verdicts(StepResult& result) const;
  void check_plan(const StepPlan& step) const;
  void begin_step(const std::vector<DistributedDataParallel*>& networks, const StepPlan& step, double loss_scale,
                  int loss_id);
  void end_step() noexcept;
  bool is_stepped(const WrappedNetwork& network) const;
  std::vector<std::string> unfolded_gradients() const;
  void set_in_function(size_t lane, bool in_function);
  bool may_record(const StepPlan& step);
  void check_leaves(const StepPlan& step, const at::Tensor& loss, double loss_scale);
  LaneLoss run_lane(const StepPlan& step, size_t lane, const std::function<at::Tensor(size_t)>& loss_of,
                    double loss_scale);
  LateNumber run_lanes(const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of, double loss_scale);
  LateNumber run_by_turns(const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of, double loss_scale);
  void switch_lane(const std::vector<size_t>& lanes, size_t from, size_t to);
  std::optional<PassSettings> begin_pass();
  void end_pass();
  double ranks_going_on(bool self) const;
  void follow_the_others(const JoinOptions& options);

  std::shared_ptr<torch::nn::Module> module_;
  std::shared_ptr<World> world_;
  DdpOptions options_;
  BufferKeeper buffers_;
  Reducer reducer_;
  std::shared_ptr<SyncGroup> sync_;  // null for a model without SyncBatchNorm
  WrappedNetwork network_;
  std::shared_ptr<const amp::MarkedWeights> weights_;  // that are trained
  bool has_parts_;                                     // of weights that are divided among ranks
  bool has_run_ = false;                               // a step of run() has ended
  std::vector<DistributedDataParallel*> stepped_;      // in a step: those that are folded, this one first
  std::vector<WrappedNetwork*> present_;               // in a step: all of the world, whose buffers follow the lanes
  std::vector<bool> in_function_;                      // in a step, by lane: its function is under way
  int64_t number_ = -1;                                // of the last step
  uint64_t runs_of_number_ = 0;                        // that are over, one for each of its losses
  OutsideLeaves outside_;
  LaneGenerators generators_;
  std::unique_ptr<LaneGraph> graph_;                        // null where lanes are not recorded
  std::vector<std::shared_ptr<torch::nn::Module>> layers_;  // of what may be recorded
  std::vector<bool> training_;                              // by layer, in the last step that could be recorded
  int no_sync_ = 0;
  const JoinOptions* joining_ = nullptr;
  int64_t passes_ = 0;  // in join(): folds by hand that this rank had data for
};

}  // namespace lockstep::parallel
