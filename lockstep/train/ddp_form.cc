#include "lockstep/train/ddp_form.h"

#include <optional>
#include <utility>

#include "lockstep/train/device.h"

namespace lockstep::train {
namespace {

// Records the steps of one rank with one lane on a GPU, unless something looks into them.
comm::MakeDeviceGraph device_graph_of(const Parts& parts) {
  const bool one = parts.world->size() == 1 && parts.plan.lanes == 1;
  const bool may = parts.options.cuda_graph && parts.recipe->repeats_operations() && !parts.options.detect_anomaly;
  return one && may ? device_graphs(parts.device) : nullptr;
}

std::optional<at::ScalarType> wire_of(const TrainOptions& options) {
  if (options.parallel.comm_dtype == parallel::CommType::kBf16) return at::kBFloat16;
  return std::nullopt;
}

}  // namespace

DdpForm::DdpForm(const Parts& parts, const Logger& log, std::shared_ptr<parallel::CommHook> hook)
    : parts_(parts),
      log_(log),
      loss_(parts),
      ddp_(parts.model.module, parts.world,
           {.buckets = {.wire = wire_of(parts.options)},
            .seed = static_cast<uint64_t>(parts.options.seed),
            .keep_threads = true,
            .first_step = 1,
            .comm_hook = std::move(hook),
            .device_graph = device_graph_of(parts)}),
      fixed_(parts.plan.channels_last) {}

// Each rank's lanes forward and backward, and the fold over all lanes.
parallel::StepResult DdpForm::run(int64_t number, data::StepBatch& batch, double decision) {
  place(batch);
  ddp_.zero_grad();
  return ddp_.run(
      number, batch, [this](const data::LaneBatch& lane) { return loss_.of(parts_.model, lane); }, *parts_.mixed,
      /*loss_id=*/0, decision);
}

// A step that is recorded reads the same memory as all others.
void DdpForm::place(data::StepBatch& batch) {
  const parallel::LaneGraph* graph = ddp_.lane_graph();
  if (graph == nullptr) return;
  const bool recorded = graph->is_recorded(), refused = !graph->refusal().empty();
  if (!told_ && recorded) log_.debug("forward and backward are recorded as a CUDA graph");
  if (!told_ && refused) {
    log_.warning("steps are launched operation by operation: they can't be recorded as a CUDA graph (",
                 graph->refusal(), "); --cuda-graph off does not try");
  }
  told_ = told_ || recorded || refused;
  if (refused) fixed_ = FixedBatch(parts_.plan.channels_last);  // its memory is free
  if (!refused && fixed_.place(batch.lanes.front())) ddp_.forget_recording();
}

}  // namespace lockstep::train
