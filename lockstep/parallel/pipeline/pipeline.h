// Model parallelism: a network that is cut into stages, one on each rank, through which the micro-batches of a step
// pass. It trains what is too large for one rank, or for one GPU.
//
//   auto net = torch::nn::Sequential(…);                              // the same on all ranks
//   auto stage = stage_of(net, world->size(), world->rank());         // this rank's layers
//   Pipeline pipeline(stage.ptr(), world, [&](const auto& inputs) { return Tensors{stage->forward(inputs[0])}; });
//   auto result = pipeline.run({.number = step, .samples = {8, 8, 8, 8}}, input_of, loss_of);
//   optimizer.step();                                                 // of this rank's stage
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/amp/step_verdict.h"
#include "lockstep/parallel/buffer_keeper.h"
#include "lockstep/parallel/lane_generators.h"
#include "lockstep/parallel/loss_scale.h"
#include "lockstep/parallel/outside_leaves.h"
#include "lockstep/parallel/pipeline/micro_batch_sums.h"
#include "lockstep/parallel/pipeline/schedule.h"
#include "lockstep/parallel/pipeline/stage_gradients.h"
#include "lockstep/parallel/pipeline/stage_link.h"
#include "lockstep/parallel/pipeline/stage_of.h"
#include "lockstep/parallel/pipeline/used_inputs.h"
#include "lockstep/world/world.h"

namespace lockstep::parallel {

struct PipelineOptions {
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  bool recompute = false;  // a stage keeps a micro-batch's inputs and outputs, and computes the rest again
  uint64_t seed = 0;       // of dropout and the like, with the step, the micro-batch and the stage
  // The ranks that have this stage of other pipelines over other samples: data parallelism. Null: this is the only one.
  std::shared_ptr<World> replicas = nullptr;
  // Whether the micro-batches are as DistributedDataParallel's lanes, to the same bits: their gradients add up by the
  // fold's tree (comm/fold_tree.h), for as many gradients more in memory as their number has bits, the stage keeps the
  // buffers of the first one, and the states of their random numbers go from stage to stage. Else one adds to the
  // other, and draws numbers of its own on each stage.
  bool as_lanes = false;
  // Where a stage computes that has no parameters; others do where theirs are.
  at::Device device = at::kCPU;
  bool own_parameters = false;  // DdpOptions'
  bool check_samples = true;    // some dimension of a micro-batch's inputs has the size that PipelineStep says
};

struct PipelineStep {
  int64_t number = 0;                 // of the step, from the start of the run
  std::vector<int64_t> samples = {};  // of each micro-batch of this pipeline, none of them empty
  std::vector<int> lanes = {};        // as_lanes: its number over all pipelines
};

// The time of an action's computation, by monotonic_ns() (base/clock.h), without waiting for other stages. On a GPU it
// is that of the host, which queues the work.
struct PipelineSpan {
  PipelineAction action;
  int64_t begin_ns = 0, end_ns = 0;
};

// The first lines are equal on all ranks, those below of this stage.
struct PipelineResult {
  double loss = 0;        // over the global batch
  double square_sum = 0;  // the sum of squares of all stages' gradients, with the loss scale in them
  double loss_scale = 1;
  int loss_id = amp::FoldedGradients::kNoLoss;
  uint64_t run = 0;  // tells it from all other results of the process

  amp::Coverage coverage = amp::Coverage::kMore;  // kLess: weights are divided among ranks, too (parallel/tensor)
  int64_t gradients = 0;                          // how many of its parameters have one
  std::optional<amp::GradientMarks> marks;        // of these
  int most_held = 0;                              // micro-batches whose activations were kept at once
  int64_t sent_bytes = 0;                         // to other stages
  double seconds = 0, waiting = 0;                // of the step, and in it for other stages
  std::vector<PipelineSpan> spans;                // in order

  operator amp::FoldedGradients() const {
    return {.square_sum = square_sum,
            .loss_scale = loss_scale,
            .loss_id = loss_id,
            .gradients = gradients,
            .run = run,
            .coverage = coverage,
            .marks = marks};
  }
};

// Used by one thread. Its ranks are the stages, in order; each holds the parameters of its own, on the CPU or on its
// rank's GPU. A parameter belongs to one stage.
//
// Micro-batches add up in .grad in their order (or as lanes do), each with its share of the batch's samples, so that
// the bits are those of the whole network that adds up the same micro-batches on one rank, whatever the schedule (and
// with dropout or replicas the values nearly).
class Pipeline {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Forward = std::function<Tensors(const Tensors& inputs)>;
  using InputOf = std::function<Tensors(size_t micro_batch)>;
  using LossOf = std::function<at::Tensor(const Tensors& outputs, size_t micro_batch)>;
  using OnOutputs = std::function<void(const Tensors& outputs, size_t micro_batch)>;

  // `forward` computes the stage: of what the stage before returns, or of input_of() on the first. Replicas get the
  // first one's parameters, with their fp32 masters, and buffers: a collective of theirs. Throws ConfigError where they
  // hold other stages or models.
  Pipeline(std::shared_ptr<torch::nn::Module> stage, std::shared_ptr<World> world, Forward forward,
           PipelineOptions options = {});

  // Runs a step. `input_of(i)` gives micro-batch i's inputs and is called on the first stage alone; `loss_of(outputs,
  // i)` is its loss, a mean over its samples, on the last one alone. Runs of one step number add up; what another step
  // has left in .grad is dropped if an update has used it, else an error, and what no run has left is added to where
  // there are no replicas. Gradients of another loss scale than 1 are held (optim/held_gradient.h). A collective of all
  // stages, and of their replicas. If anything throws, all ranks are told, and what a stage threw names step,
  // micro-batch and stage.
  PipelineResult run(const PipelineStep& step, const InputOf& input_of, const LossOf& loss_of, double loss_scale = 1);
  // The same in mixed precision: `mixed` has this rank's stage.
  PipelineResult run(const PipelineStep& step, const InputOf& input_of, const LossOf& loss_of,
                     const amp::MixedPrecision& mixed, int loss_id = 0);

  // Computes outputs alone, without gradients, such as those of an evaluation, for which the caller puts each stage
  // into eval(). `on_outputs(outputs, i)` gets those of the whole network, on the last stage alone, and in `mixed`'s
  // autocast where it is given. A collective of all stages; errors as run()'s, which name micro-batches alone.
  void infer(size_t micro_batches, const InputOf& input_of, const OnOutputs& on_outputs,
             const amp::MixedPrecision* mixed = nullptr);

  bool is_first() const { return world_->rank() == 0; }
  bool is_last() const { return world_->rank() == world_->size() - 1; }

 private:
  // A micro-batch between its forward and its backward.
  struct Held {
    Tensors inputs, outputs;
    at::Tensor loss;  // of the last stage
  };
  struct Pass {
    const PipelineStep& step;
    const InputOf& input_of;
    const LossOf& loss_of;
    const LossScale& scale;
    double loss_scale = 1;
    double samples = 0;  // of all replicas
    std::vector<Held> held = {};
    double loss = 0;
    bool has_graph = false;  // some micro-batch's outputs
  };

  PipelineResult run_with(const PipelineStep& step, const InputOf& input_of, const LossOf& loss_of,
                          const LossScale& scale);
  std::string place_of(const Pass& pass, size_t micro_batch) const;  // for messages
  // Both return when their computation began, and ended.
  std::pair<int64_t, int64_t> forward(Pass& pass, size_t micro_batch);
  std::pair<int64_t, int64_t> backward(Pass& pass, size_t micro_batch);
  // Calls it in mixed's autocast, if there is one.
  static void in_autocast(const amp::MixedPrecision* mixed, const std::function<void()>& compute);
  void tell_all(const std::string& error) const;
  void check_outputs(const Tensors& outputs) const;
  void check_used(int64_t step) const;
  void say_role() const;
  void check_inputs(const Tensors& inputs, int64_t samples) const;
  // Marks a run or an infer() as long as it exists. Throws ConfigError within one.
  class Busy;
  void check_leaves(const Pass& pass, const Tensors& roots);
  double sum_of_samples(const PipelineStep& step) const;
  void begin_numbers(const Pass& pass, size_t micro_batch, Tensors& inputs);
  void fold_replicas();
  void sum(const at::Tensor& numbers) const;

  std::shared_ptr<torch::nn::Module> stage_;
  std::shared_ptr<World> world_;
  Forward forward_;
  PipelineOptions options_;
  StageGradients gradients_;
  std::optional<MicroBatchSums> sums_;   // as_lanes, in a run
  std::optional<BufferKeeper> buffers_;  // of replicas
  OutsideLeaves outside_;
  UsedInputs used_inputs_;
  int64_t number_ = -1;          // of the last run's step
  uint64_t runs_of_number_ = 0;  // that came before this one
  LaneGenerators generators_;
  bool is_busy_ = false;
  StageLink link_;
};

}  // namespace lockstep::parallel
