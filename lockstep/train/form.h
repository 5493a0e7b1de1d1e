// The form of parallel training that a run takes (--parallel): how a step of the global batch becomes gradients.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/log.h"
#include "lockstep/data/loader.h"
#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/pipeline/stage_plan.h"
#include "lockstep/parallel/sharded_optimizer.h"
#include "lockstep/train/parts.h"
#include "lockstep/train/reporter.h"

namespace lockstep::train {

class Form {
 public:
  virtual ~Form() = default;

  // The lanes that this rank loads.
  virtual World::Lanes lanes() const = 0;
  // Forward and backward of a step, with these lanes. Afterwards .grad of what this rank's optimizer updates is the
  // gradient of the mean loss over the global batch. `decision`: DistributedDataParallel::run's. A collective.
  virtual parallel::StepResult run(int64_t number, data::StepBatch& batch, double decision) = 0;
  // Gives all ranks the same buffers, for an evaluation or a checkpoint. A collective.
  virtual void sync_buffers() = 0;
  // The first parameter whose gradient was not finite in the last step: "conv1.weight". A collective.
  virtual std::string first_not_finite() const = 0;

  // Whether this rank tells the ledger which samples its lanes have: one of several that read them does.
  virtual bool notes_lanes() const { return true; }

  // Called before the device computes much else, such as an evaluation.
  virtual void make_room() {}
  // Tells what the ranks have sent to each other in the last step, where that is known.
  virtual void report(Reporter& /*reporter*/) const {}
};

// The one that parts.options name. Both outlive it. A collective. Throws ConfigError for a network that the form can't
// take.
std::unique_ptr<Form> make_form(const Parts& parts, const Logger& log);

// Throws ConfigError, before anything of a run is written, for what make_form() could not take.
void check_form(const Parts& parts);

// What the form makes of the ranks, for the header: "a pipeline of 2 stages …"; "" for data parallelism.
std::string form_text(const Parts& parts);
// The first of a module's parameters on this rank whose gradient is not finite; "" where all are.
std::string first_not_finite_of(const torch::nn::Module& module);

// Whether the weights have the same bits in this form as in data parallelism, at any number of ranks.
bool has_same_bits(const Parts& parts);

// Whether each weight is updated by one rank, its owner: that of its stage, or a parameter server.
bool has_owners(const TrainOptions& options);

// The rank that owns each of the optimizer's parameters; empty where none are owned.
std::vector<int> owners_of(const TrainOptions& options, const parallel::StagePlan& stages,
                           const optim::AnyOptimizer& optimizer, const World& world);

// How ranks divide the optimizer's state and the weights, for the header: "state and weights shared by 2 ranks".
std::string sharding_text(const TrainOptions& options, const parallel::ShardedOptimizer& optimizer, const World& world);

// Whether ranks share the optimizer's state: as --shard-optimizer says, and always where weights have owners.
bool shards_optimizer(const TrainOptions& options, const optim::FusedOptimizer& optimizer, const World& world);

}  // namespace lockstep::train
