#include "lockstep/train/trial_lane.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/error.h"
#include "lockstep/data/byte_tables.h"
#include "lockstep/data/sampler.h"
#include "lockstep/parallel/lane_errors.h"
#include "lockstep/parallel/lane_generators.h"
#include "lockstep/train/memory_format.h"

namespace lockstep::train {
namespace {

// Puts a module's buffers back as they were.
class KeptBuffers {
 public:
  explicit KeptBuffers(const torch::nn::Module& module) : buffers_(module.buffers()) {
    for (const at::Tensor& buffer : buffers_) values_.push_back(buffer.defined() ? buffer.clone() : at::Tensor());
  }
  ~KeptBuffers() {
    const c10::AutoGradMode no_grad(false);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (values_[i].defined()) buffers_[i].copy_(values_[i]);
    }
  }
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  std::vector<at::Tensor> buffers_, values_;
};

// One sample of zeros.
data::Batch zeros_of(const Parts& parts) {
  data::Batch batch;
  for (const data::Field& field : data::looked_up(parts.data.train->fields())) {
    std::vector<int64_t> shape = field.shape;
    shape.insert(shape.begin(), 1);
    batch.tensors.emplace_back(field.name, at::zeros(shape, at::TensorOptions(field.dtype).device(parts.device)));
  }
  batch.data() = batch.data().contiguous(memory_format(parts.plan.channels_last));
  return batch;
}

// The line of BatchNorm's refusal; empty if the forward passes, or fails for another reason.
std::string refusal_of(const Parts& parts) {
  parallel::LaneGenerators generators(*parts.model.module);
  const parallel::LaneGenerators::Kept kept_generators(generators);
  const KeptBuffers kept_buffers(*parts.model.module);
  const c10::AutoGradMode no_grad(false);
  const amp::AutocastScope autocast(parts.mixed->policy(), parts.device.type());
  try {
    parts.model.forward(zeros_of(parts));
  } catch (const std::exception& error) {
    const std::string line = first_line(error.what());
    if (parallel::lacks_samples(line)) return line;
  }
  return "";
}

// How to have larger lanes. A whole batch is not left out by --drop-last.
std::string advice(const Plan& plan) {
  if (plan.batch_size == 1) return "raise --batch-size";
  if (plan.steps_per_epoch == 1) return "use fewer --lanes";
  return "leave an epoch's last, smaller batch out by --drop-last, or use another --batch-size";
}

}  // namespace

std::optional<LoneSample> find_lone_sample(const Plan& plan, int64_t samples, int64_t begin) {
  const int64_t end = std::min(plan.total_steps, begin + plan.steps_per_epoch);  // all epochs are alike
  for (int64_t step = begin; step < end; ++step) {
    const int64_t first = plan.step_in_epoch(step) * plan.global_batch();
    const int64_t in_step = std::min(plan.global_batch(), samples - first);
    for (int lane = 0; lane < plan.lanes; ++lane) {
      if (data::lane_range(in_step, plan.lanes, lane).count == 1) return LoneSample{.step = step, .lane = lane};
    }
  }
  return std::nullopt;
}

void try_lone_sample(const Parts& parts) {
  if (parts.options.parallel.sync_bn) return;
  const auto lone = find_lone_sample(parts.plan, parts.data.train->size(), parts.state.step);
  if (!lone) return;
  const std::string refusal = refusal_of(parts);
  if (refusal.empty()) return;
  throw ConfigError("step ", lone->step + 1, ", lane ", lone->lane, ": its batch will have one sample, which the ",
                    "network can't be trained on (", refusal, "); ", advice(parts.plan));
}

}  // namespace lockstep::train
