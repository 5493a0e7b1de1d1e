#include "lockstep/train/pipeline_form.h"

#include <ATen/ops/tensor.h>

#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/config/words.h"

namespace lockstep::train {

PipelineForm::PipelineForm(const Parts& parts)
    : parts_(parts), loss_(parts), groups_(parallel::make_pipeline_groups(parts.world, parts.stages.stages())) {
  const parallel::StagePlan& plan = parts_.stages;
  const torch::nn::Module& network = *parts_.model.module;
  const parallel::PipelineOptions options{.schedule = parts_.options.parallel.schedule_pp,
                                          .seed = static_cast<uint64_t>(parts_.options.seed),
                                          .replicas = groups_.replicas,
                                          .as_lanes = true,
                                          .device = parts_.device};
  for (int i = 0; i < plan.stages(); ++i) buffers_.push_back(plan.stage(network, i).buffers());
  stage_ = std::make_shared<nn::Stage>(plan.stage(network, groups_.stage));
  pipeline_.emplace(
      stage_, groups_.chain, [stage = stage_](const nn::Tensors& inputs) { return stage->forward(inputs); }, options);
}

parallel::StagePlan PipelineForm::plan(const Recipe& recipe, const Model& model, const std::vector<int64_t>& shape,
                                       int stages) {
  if (model.layers) return parallel::plan_stages(*model.module, model.layers(), shape, stages);
  throw ConfigError("--parallel pipeline: ", recipe.name(),
                    "'s network is one piece: its make_model() gives no layers (train::Model::layers)");
}

void PipelineForm::check(const Parts& parts) {
  const Plan& plan = parts.plan;
  if (!parts.device.is_cpu() && std::string_view(parts.world->communicator().backend()) != "nccl") {
    throw ConfigError("--parallel pipeline: stages on GPUs go by --backend nccl, with a GPU for each");
  }
  if (parts.options.data.skip_bad > 0) {
    throw ConfigError("--skip-bad: each stage of a pipeline reads the samples itself, and may pass over others; use ",
                      "--parallel ddp or dp");
  }
  const int64_t last = parts.data.train->size() % plan.global_batch();
  const bool has_several = parts.world->size() > parts.stages.stages();
  if (has_several && !parts.options.data.drop_last && last > 0 && last < plan.lanes) {
    throw ConfigError("--parallel pipeline: an epoch's last step has ", last, " samples for ", plan.lanes,
                      " lanes, so that a pipeline may get none; give --drop-last");
  }
}

World::Lanes PipelineForm::lanes() const {
  const int own = parts_.plan.lanes / groups_.pipelines;
  return {groups_.pipeline * own, (groups_.pipeline + 1) * own};
}

parallel::StepResult PipelineForm::run(int64_t number, data::StepBatch& batch, double decision) {
  std::vector<const data::LaneBatch*> lanes;
  parallel::PipelineStep step{.number = number};
  for (const data::LaneBatch& lane : batch.lanes) {
    if (lane.size() == 0) continue;
    lanes.push_back(&lane);
    step.samples.push_back(lane.size());
    step.lanes.push_back(lane.lane);
  }
  for (const at::Tensor& weight : stage_->parameters()) weight.mutable_grad().reset();
  const auto result = pipeline_->run(
      step, [&](size_t i) { return nn::Tensors{loss_.input_of(*lanes[i]).data()}; },
      [&](const nn::Tensors& outputs, size_t i) { return loss_.of(outputs.back(), *lanes[i]); }, *parts_.mixed);
  check_gradients(number);
  const bool leads = parts_.world->rank() == 0;
  const at::Tensor decisions = at::tensor({leads ? decision : 0.0, leads ? 0.0 : decision}, at::kDouble);
  parts_.world->communicator().all_reduce(decisions, comm::ReduceOp::kSum);
  parallel::StepResult all;
  all.loss = result.loss;
  all.square_sum = result.square_sum;
  all.decision = decisions[0].item<double>();
  all.others = decisions[1].item<double>();
  all.loss_scale = result.loss_scale;
  all.loss_id = result.loss_id;
  all.gradients = result.gradients;
  all.run = result.run;
  all.marks = result.marks;
  all.coverage = result.coverage;
  return all;
}

// The optimizer counts the steps of each weight on all ranks, of which this one alone knows its gradient.
void PipelineForm::check_gradients(int64_t number) const {
  for (const auto& weight : stage_->named_parameters()) {
    if (!weight.value().requires_grad() || weight.value().grad().defined()) continue;
    throw ConfigError("step ", number + 1, ", stage ", groups_.stage, ": ", weight.key(),
                      " has no gradient; a pipeline trains networks that use all weights in each step");
  }
}

void PipelineForm::sync_buffers() {
  for (int stage = 0; stage < parts_.stages.stages(); ++stage) {
    for (const at::Tensor& buffer : buffers_[static_cast<size_t>(stage)]) {
      parts_.world->communicator().broadcast(buffer, stage);  // of the first pipeline, as all others have it
    }
  }
}

std::string PipelineForm::first_not_finite() const {
  const std::string own = first_not_finite_of(*stage_);
  for (const std::string& each : comm::gather_texts(parts_.world->communicator(), own)) {
    if (!each.empty()) return each;
  }
  return "a weight";
}

std::string PipelineForm::text(const Parts& parts) {
  const int stages = parts.stages.stages(), pipelines = parts.world->size() / stages;
  const int lanes = parts.plan.lanes / pipelines;
  return cat(pipelines > 1 ? cat(pipelines, " pipelines") : "a pipeline", " of ", stages, " stages (",
             parts.stages.text(), "), ", config::word_of(parts.options.parallel.schedule_pp), " over ", lanes,
             lanes == 1 ? " lane" : " lanes");
}

}  // namespace lockstep::train
