// Data parallelism: every rank holds the model, computes its own lanes of the global batch, and all apply one and the
// same gradient (Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", VLDB 2020).
//
// A step by run(): for each of this rank's lanes the keyed random numbers are set, the user's function returns the
// lane's loss (a mean over its samples), and backward folds the gradients over all lanes, so that .grad ends as the
// gradient of the mean loss over the global batch. Or by hand, as with PyTorch: forward and backward, the last backward
// under no other scope, those before it under no_sync(); .grad ends as the mean over ranks. Ranks that run out of data
// before the others do so within join().
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/parallel/buffer_keeper.h"
#include "lockstep/parallel/ddp_options.h"
#include "lockstep/parallel/reducer.h"
#include "lockstep/parallel/sync_batch_norm.h"
#include "lockstep/world/world.h"

namespace lockstep::parallel {

// One global batch as run() sees it: which lanes this rank owns and what each weighs.
struct StepPlan {
  struct Lane {
    int index = 0;        // over all ranks
    int64_t samples = 0;  // 0: an empty lane of a ragged last batch
  };
  int64_t number = 0;       // of the step, from the start of the run
  int64_t samples = 0;      // of the global batch
  std::vector<Lane> lanes;  // this rank's, ascending
};

// What a step gave. Equal on all ranks and at any number of them.
struct StepResult {
  double loss = 0;        // mean over the global batch
  double square_sum = 0;  // of the folded gradients, still multiplied by the loss scale; finite iff all of them are
  double decision = 0;    // what rank 0 passed to run()
};

// What the reduction of all buckets took in the last step; each bucket's share is Reducer::log()'s.
struct CommLog {
  int64_t bytes = 0;     // of gradients, on this rank
  double in_flight = 0;  // seconds in which buckets were under way, each bucket's time counted
  double waited = 0;     // of those, seconds in which this rank waited
  double overlap() const { return in_flight > 0 ? 1 - waited / in_flight : 0; }  // share that backward hid
};

struct JoinOptions {
  bool divide_by_initial_world_size = true;  // false: by the ranks that still have data
  bool throw_on_early_termination = false;   // the first rank to run out ends all of them
};

class DistributedDataParallel {
 public:
  // A collective: checks that all ranks hold the same model and gives them rank 0's parameters and buffers.
  // Throws ConfigError that names the first difference and its rank.
  DistributedDataParallel(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<World> world,
                          const DdpOptions& options = {});

  // One step. `loss_of(i)` computes lanes[i]'s loss, a scalar with a graph; it is not called for an empty lane.
  // `loss_scale` multiplies the losses before backward. `decision` is rank 0's word to all ranks for this step.
  // If anything throws, all ranks are told, .grad is left undefined, and buffers are as before.
  StepResult run(const StepPlan& step, const std::function<at::Tensor(size_t lane)>& loss_of, double loss_scale = 1,
                 double decision = 0);

  // The same for a batch that knows its lanes, as data::Loader gives it: global_samples, and lanes with lane (its
  // number) and size(). `loss_of(lane)` gets the lane itself. `number` is the step's, from the start of the run.
  template <typename Batch, typename LossOf>
  StepResult run(int64_t number, const Batch& batch, LossOf&& loss_of, double loss_scale = 1, double decision = 0) {
    StepPlan step{.number = number, .samples = batch.global_samples, .lanes = {}};
    for (const auto& lane : batch.lanes) step.lanes.push_back({lane.lane, lane.size()});
    return run(
        step, [&](size_t i) { return loss_of(batch.lanes[i]); }, loss_scale, decision);
  }

  // The hand-driven form: backward passes begun while the returned scope lives only accumulate; the forward may stand
  // within it or before it.
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
  // Backward of a loss that is a mean over this rank's samples; folds unless within no_sync().
  void backward(const at::Tensor& loss);
  // Runs `loop`, a hand-driven loop of which ranks may make different numbers of turns. A rank that is through takes
  // part in the others' folds with +0 until all are, and then gets the weights and buffers of the one that went on
  // longest; an optimizer's state is not brought along. Within the loop no other collectives, as a ShardedOptimizer's.
  // A collective. Throws ConfigError on all ranks if one has run out and throw_on_early_termination is set.
  void join(const std::function<void()>& loop, const JoinOptions& options = {});

  // Rank 0's buffers for all. Evaluation and saving call it. A collective.
  void sync_buffers() { buffers_.sync(world_->communicator()); }

  // Whether the weights' bits do not depend on the number of ranks.
  bool same_bits() const;
  CommLog comm_log() const;

  torch::nn::Module& module() const { return *module_; }
  World& world() const { return *world_; }
  const Reducer& reducer() const { return reducer_; }

 private:
  double run_lane(const StepPlan& step, size_t lane, const std::function<at::Tensor(size_t)>& loss_of,
                  double loss_scale);
  double run_lanes(const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of, double loss_scale);
  double run_by_turns(const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of, double loss_scale);
  void switch_lane(const std::vector<size_t>& lanes, size_t from, size_t to);
  void seed_kernels(uint64_t seed);
  void finish_fold();
  double ranks_going_on(bool self) const;
  void follow_the_others(const JoinOptions& options);

  std::shared_ptr<torch::nn::Module> module_;
  std::shared_ptr<World> world_;
  DdpOptions options_;
  BufferKeeper buffers_;
  Reducer reducer_;
  std::shared_ptr<SyncGroup> sync_;  // of a model with SyncBatchNorm
  std::vector<at::Generator> generators_;
  std::vector<std::vector<at::Tensor>> generator_states_;  // by turn, of each generator, where lanes run by turns
  int no_sync_ = 0;
  const JoinOptions* joining_ = nullptr;
  int64_t passes_ = 0;  // by hand, in join(): folds that this rank had data for
};

}  // namespace lockstep::parallel
