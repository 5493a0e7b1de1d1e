#include "lockstep/train/lane_loss.h"

#include <cmath>
#include <optional>

#include "lockstep/amp/anomaly.h"
#include "lockstep/base/text.h"
#include "lockstep/train/memory_format.h"
#include "lockstep/train/non_finite.h"

namespace lockstep::train {

data::Batch LaneLoss::input_of(const data::LaneBatch& lane) const {
  data::Batch batch = lane;
  batch.data() = lane.data().contiguous(memory_format(parts_.plan.channels_last));
  return batch;
}

at::Tensor LaneLoss::of(const Model& model, const data::LaneBatch& lane) const {
  std::optional<amp::AnomalyWatch> watch;  // SyncBatchNorm's lanes are on threads of their own
  if (parts_.options.detect_anomaly) watch.emplace(*model.module);
  const data::Batch batch = input_of(lane);
  at::Tensor loss = parts_.recipe->loss(model.forward(batch), batch);
  if (watch && !std::isfinite(loss.item<double>())) {
    fail_at(parts_, cat("rank ", parts_.world->rank(), ", lane ", lane.lane), watch->found().value_or("the loss"));
  }
  return loss;
}

at::Tensor LaneLoss::of(const at::Tensor& output, const data::LaneBatch& lane) const {
  return parts_.recipe->loss(output, lane);
}

}  // namespace lockstep::train
