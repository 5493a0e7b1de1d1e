#include "lockstep/train/form.h"

#include <ATen/ops/isfinite.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/train/ddp_form.h"
#include "lockstep/train/pipeline_form.h"
#include "lockstep/train/replicas_form.h"
#include "lockstep/train/server_form.h"

namespace lockstep::train {

std::unique_ptr<Form> make_form(const Parts& parts, const Logger& log) {
  switch (parts.options.parallel.form) {
    case parallel::ParallelForm::kDdp:
      return std::make_unique<DdpForm>(parts, log);
    case parallel::ParallelForm::kDp:
      return std::make_unique<ReplicasForm>(parts);
    case parallel::ParallelForm::kPipeline:
      return std::make_unique<PipelineForm>(parts);
    case parallel::ParallelForm::kPs:
      return std::make_unique<ServerForm>(parts, log);
  }
  throw BugError("a form of parallel training that it does not know");
}

void check_form(const Parts& parts) {
  const parallel::ParallelForm form = parts.options.parallel.form;
  if (form == parallel::ParallelForm::kDp) ReplicasForm::check(parts);
  if (form == parallel::ParallelForm::kPipeline) PipelineForm::check(parts);
}

std::string form_text(const Parts& parts) {
  switch (parts.options.parallel.form) {
    case parallel::ParallelForm::kDp:
      return ReplicasForm::text(parts);
    case parallel::ParallelForm::kPipeline:
      return PipelineForm::text(parts);
    case parallel::ParallelForm::kPs:
      return ServerForm::text(parts);
    default:
      return {};
  }
}

std::string first_not_finite_of(const torch::nn::Module& module) {
  const optim::UseHeldGradients use;
  for (const auto& weight : module.named_parameters()) {
    const at::Tensor& gradient = weight.value().grad();
    if (gradient.defined() && !gradient.isfinite().all().item<bool>()) return weight.key();
  }
  return {};
}

bool has_same_bits(const Parts& parts) {
  const bool is_dp = parts.options.parallel.form == parallel::ParallelForm::kDp;
  return parts.world->communicator().same_bits() && (!is_dp || ReplicasForm::has_bits_of_lanes(parts));
}

bool has_owners(const TrainOptions& options) {
  const parallel::ParallelForm form = options.parallel.form;
  return form == parallel::ParallelForm::kPipeline || form == parallel::ParallelForm::kPs;
}

std::vector<int> owners_of(const TrainOptions& options, const parallel::StagePlan& stages,
                           const optim::AnyOptimizer& optimizer, const World& world) {
  // Each stage's gradients are on its own rank, of the first pipeline and as well of the others.
  if (stages.stages() > 0) return parallel::stages_of(stages, optimizer.all_parameters());
  if (options.parallel.form != parallel::ParallelForm::kPs) return {};
  return ServerForm::owners(optimizer, options, world.size());
}

std::string sharding_text(const TrainOptions& options, const parallel::ShardedOptimizer& optimizer,
                          const World& world) {
  const int ranks = world.size(), servers = options.parallel.servers;
  if (servers > 0) return cat("state on ", servers, " of ", ranks, ranks == 1 ? " rank" : " ranks");
  return cat(optimizer.shares_weights() ? "state and weights shared by " : "state sharded over ", ranks, " ranks");
}

bool shards_optimizer(const TrainOptions& options, const optim::FusedOptimizer& optimizer, const World& world) {
  if (has_owners(options)) return true;
  const auto asked = options.parallel.shard_optimizer;
  if (asked != parallel::ShardOptimizer::kAuto) return asked == parallel::ShardOptimizer::kOn && world.size() > 1;
  return world.size() > 1 && world.communicator().has_views() && optimizer.elementwise();
}

}  // namespace lockstep::train
