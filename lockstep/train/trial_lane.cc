#include "lockstep/train/trial_lane.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>
#include <vector>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/data/byte_tables.h"
#include "lockstep/data/sampler.h"
#include "lockstep/parallel/lane_errors.h"
#include "lockstep/parallel/lane_generators.h"
#include "lockstep/parallel/sync_batch_norm.h"
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

// The same with SyncBatchNorm, of a step in which rank 0 has `lanes` lanes of one sample, and no other rank has any.
std::string synced_refusal_of(const Parts& parts, size_t lanes) {
  std::vector<size_t> filled;
  if (parts.world->rank() == 0) filled.resize(lanes);
  std::iota(filled.begin(), filled.end(), 0);
  std::string refusal;
  const auto lane = [&](size_t /*number*/) { refusal = refusal_of(parts); };
  const auto group = parallel::find_sync_group(*parts.model.module);
  group->run(lanes, filled, parts.model.module->parameters()[0].device(), lane, [](size_t /*from*/, size_t /*to*/) {});
  return comm::text_of_rank(parts.world->communicator(), 0, refusal);
}

// How to have larger batches. A whole one is not left out by --drop-last.
std::string advice(const Plan& plan, Lone lone) {
  const bool all = lone == Lone::kAllLanes;
  if ((all ? plan.global_batch() : plan.batch_size) == 1) return "raise --batch-size";
  if (plan.steps_per_epoch == 1) return all ? "give it more samples" : "use fewer --lanes";
  return "leave an epoch's last, smaller batch out by --drop-last, or use another --batch-size";
}

// Tries the model if there is a step with such a batch.
void try_lone(const Parts& parts, Lone lone, const std::function<std::string()>& refusal_of_model) {
  const auto found = find_lone_sample(parts.plan, parts.data.train->size(), parts.state.step, lone);
  if (!found) return;
  parallel::LaneGenerators generators(*parts.model.module);
  const parallel::LaneGenerators::Kept kept_generators(generators);
  const KeptBuffers kept_buffers(*parts.model.module);
  const std::string refusal = refusal_of_model();
  if (refusal.empty()) return;
  const std::string whose =
      lone == Lone::kAllLanes ? ": all lanes together" : cat(", lane ", found->lane, ": its batch");
  throw ConfigError("step ", found->step + 1, whose, " will have one sample, which the network can't be trained on (",
                    refusal, "); ", advice(parts.plan, lone));
}

}  // namespace

std::optional<LoneSample> find_lone_sample(const Plan& plan, int64_t samples, int64_t begin, Lone lone) {
  const int64_t end = std::min(plan.total_steps, begin + plan.steps_per_epoch);  // all epochs are alike
  const int lanes = lone == Lone::kAllLanes ? 1 : plan.lanes;
  for (int64_t step = begin; step < end; ++step) {
    const int64_t first = plan.step_in_epoch(step) * plan.global_batch();
    const int64_t in_step = std::min(plan.global_batch(), samples - first);
    for (int lane = 0; lane < lanes; ++lane) {
      if (data::lane_range(in_step, lanes, lane).count == 1) return LoneSample{.step = step, .lane = lane};
    }
  }
  return std::nullopt;
}

void try_lone_sample(const Parts& parts) {
  if (!parts.options.parallel.sync_bn) return try_lone(parts, Lone::kLane, [&] { return refusal_of(parts); });
  try_lone(parts, Lone::kAllLanes, [&] { return synced_refusal_of(parts, 1); });
  try_lone(parts, Lone::kLane, [&] { return synced_refusal_of(parts, 2); });
}

}  // namespace lockstep::train
