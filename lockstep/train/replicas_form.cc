#include "lockstep/train/replicas_form.h"

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <barrier>
#include <list>
#include <optional>
#include <utility>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"
#include "lockstep/nn/thread_generator.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/parallel/loss_scale.h"
#include "lockstep/parallel/mixed_networks.h"
#include "lockstep/train/device.h"

namespace lockstep::train {
namespace {

// No more than lanes. On GPUs one on each; on the CPU as many as cores for their threads, but so many that none has
// more than two lanes, whose gradients then add up as in the fold.
size_t replicas_of(const Parts& parts) {
  const int asked = parts.options.parallel.replicas, lanes = parts.plan.lanes;
  if (asked > lanes) {
    throw ConfigError("--replicas ", asked, ": each replica gets a lane at least, and there are ", lanes,
                      "; give --lanes ", asked, " or more");
  }
  if (!parts.device.is_cpu()) {
    const auto gpus = static_cast<int>(devices_of_process(parts.options.device, parts.device).size());
    if (asked <= gpus) return static_cast<size_t>(asked > 0 ? asked : std::min(gpus, lanes));
    throw ConfigError("--replicas ", asked, ": each replica has a GPU of its own, and here ",
                      gpus == 1 ? "is " : "are ", gpus, "; give --replicas ", gpus, " or less");
  }
  const int threads = static_cast<int>(parts.state.origin.number("threads"));
  const int by_cores = std::clamp(usable_cores() / std::max(1, threads), 1, lanes);
  return static_cast<size_t>(asked > 0 ? asked : std::max(by_cores, (lanes + 1) / 2));
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& each : tensors) copies.push_back(each.detach().clone());
  return copies;
}

struct ClearCasts {
  void operator()() noexcept { at::autocast::clear_cache(); }
};
using LaneTurns = std::optional<std::barrier<ClearCasts>>;

// A replica's part in the turns. Under autocast replicas begin their lanes together, with no weight cast yet: each
// lane's gradients of cast weights are added up in the weights' dtype, and autocast's cache is the process's.
class LaneTurn {
 public:
  explicit LaneTurn(LaneTurns& turns) : turns_(turns) {}
  ~LaneTurn() {
    if (turns_) turns_->arrive_and_drop();
  }
  LaneTurn(const LaneTurn&) = delete;
  LaneTurn& operator=(const LaneTurn&) = delete;
  void next() const {
    if (turns_) turns_->arrive_and_wait();
  }

 private:
  LaneTurns& turns_;
};

data::LaneBatch on_device(data::LaneBatch lane, at::Device device) {
  lane.for_each_tensor([&](at::Tensor& tensor) { tensor = tensor.to(device); });
  return lane;
}

// How many replicas compute so many lanes, and the first lane of each. Lanes alone, or by twos, are subtrees of the
// fold; with fewer replicas than that they have more lanes, and gradients add up in another order.
struct Shares {
  size_t lanes, replicas;

  Shares(size_t all, size_t most) : lanes(all), replicas(std::min(all, most)) {
    const size_t pairs = (all + 1) / 2;
    if (all > most && pairs <= most) replicas = pairs;
  }
  bool are_subtrees() const { return replicas == lanes || replicas == (lanes + 1) / 2; }
  size_t first(size_t replica) const {
    return replicas == (lanes + 1) / 2 ? std::min(2 * replica, lanes) : replica * lanes / replicas;
  }
};

std::vector<at::Tensor> trained(const torch::nn::Module& network) {
  std::vector<at::Tensor> weights;
  for (const at::Tensor& each : network.parameters()) {
    if (each.requires_grad()) weights.push_back(each);
  }
  return weights;
}

}  // namespace

void ReplicasForm::check(const Parts& parts) {
  const size_t count = replicas_of(parts);
  if (parts.options.parallel.sync_bn && std::cmp_not_equal(count, parts.plan.lanes)) {
    throw ConfigError("--sync-bn: with --parallel dp each replica has one lane; give --replicas ", parts.plan.lanes);
  }
}

ReplicasForm::ReplicasForm(const Parts& parts)
    : parts_(parts), loss_(parts), weights_(std::make_shared<amp::MarkedWeights>(trained(*parts.model.module))) {
  const size_t count = replicas_of(parts_);
  parts_.world->self().role.set(cat(count, count == 1 ? " replica" : " replicas"));
  const bool sync = parts_.options.parallel.sync_bn;
  std::vector<at::Device> devices = devices_of_process(parts_.options.device, parts_.device);
  devices.resize(count, parts_.device);
  for (const at::Device& device : devices) {
    if (!device.is_cpu()) gpu_numbers_.emplace_back(std::vector<at::Device>{device});
  }
  models_.reserve(count);  // their addresses stay
  const auto make = [this](const at::Device&) {
    models_.push_back(parts_.recipe->make_model(static_cast<uint64_t>(parts_.options.seed), *parts_.data.train));
    return models_.back().module;
  };
  replicas_ = std::make_shared<parallel::ReplicaSet>(parts_.model.module, make, std::move(devices),
                                                     parallel::ReplicaSetOptions{.sync = sync, .as_lanes = true});
}

const Model& ReplicasForm::model_of(const torch::nn::Module& replica) const {
  return *std::ranges::find_if(models_, [&](const Model& model) { return model.module.get() == &replica; });
}

parallel::StepResult ReplicasForm::run(int64_t number, data::StepBatch& batch, double decision) {
  std::vector<const data::LaneBatch*> lanes;
  for (const data::LaneBatch& lane : batch.lanes) {
    if (lane.size() > 0) lanes.push_back(&lane);
  }
  for (const at::Tensor& weight : weights_->all()) weight.mutable_grad().reset();
  const double scale = parts_.mixed->loss_scale();
  const Shares shares(lanes.size(), replicas());
  const size_t count = shares.replicas;
  std::vector<double> losses(lanes.size());
  std::vector<at::Tensor> first_buffers;  // of the first lane, which are kept
  std::list<parallel::LaneGenerators::Kept> kept;
  for (auto& numbers : gpu_numbers_) kept.emplace_back(numbers);
  LaneTurns turns;
  if (parts_.mixed->policy().cast_ops) turns.emplace(static_cast<std::ptrdiff_t>(count));
  const auto share_of = [&](size_t i) {
    return static_cast<double>(lanes[i]->size()) / static_cast<double>(batch.global_samples);
  };
  const auto compute = [&](torch::nn::Module& replica, const std::vector<at::Tensor>&) {
    const Model& model = model_of(replica);
    const auto at = static_cast<size_t>(&model - models_.data());
    const LaneTurn turn(turns);
    at::Tensor sum;
    for (size_t i = shares.first(at); i < shares.first(at + 1); ++i) {
      const uint64_t seed =  // each lane draws its own numbers, as DistributedDataParallel's
          kernel_seed(static_cast<uint64_t>(parts_.options.seed), static_cast<uint64_t>(number),
                      static_cast<uint32_t>(lanes[i]->lane));
      at::Generator generator;
      const nn::ThreadGenerator own(generator, [seed] { return seed; });
      if (!gpu_numbers_.empty()) gpu_numbers_[at].seed(seed);
      turn.next();
      const at::Tensor loss = loss_.of(model, on_device(*lanes[i], replicas_->devices()[at]));
      if (i == 0) first_buffers = copies_of(model.module->buffers());
      losses[i] = loss.detach().item<double>();
      const at::Tensor scaled = parallel::scaled_loss(loss, share_of(i) * scale);
      sum = sum.defined() ? sum + scaled : scaled;
    }
    return std::vector<at::Tensor>{sum};
  };
  std::vector<std::vector<at::Tensor>> sums;
  {
    const amp::AutocastScope autocast = parts_.mixed->autocast();
    sums = replicas_->run(count, std::vector<std::vector<at::Tensor>>(count), compute);
  }
  at::Tensor total = sums[0][0];
  for (size_t i = 1; i < count; ++i) total = total + sums[i][0].to(total.device());
  total.backward();
  {
    const c10::AutoGradMode no_grad(false);
    const std::vector<at::Tensor> buffers = parts_.model.module->buffers();
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(first_buffers[i]);
  }
  for (const at::Tensor& weight : weights_->all()) {
    if (weight.grad().defined()) optim::hold_scaled(weight.grad(), scale);
  }
  parallel::hold_masters(*parts_.model.module);
  double loss = 0;
  for (size_t i = 0; i < lanes.size(); ++i) loss += losses[i] * share_of(i);
  parallel::StepResult result;
  result.loss = loss;
  result.square_sum = amp::square_sum_of_gradients(weights_->all(), scale);
  result.decision = decision;
  result.loss_scale = scale;
  result.loss_id = 0;
  result.run = parallel::next_run();
  result.marks = amp::GradientMarks({weights_});
  result.gradients = result.marks->gradients();
  return result;
}

std::string ReplicasForm::first_not_finite() const {
  const std::string first = first_not_finite_of(*parts_.model.module);
  return first.empty() ? "a weight" : first;
}

bool ReplicasForm::has_bits_of_lanes(const Parts& parts) {
  return Shares(static_cast<size_t>(parts.plan.lanes), replicas_of(parts)).are_subtrees();
}

std::string ReplicasForm::text(const Parts& parts) {
  const int lanes = parts.plan.lanes;
  const size_t replicas = replicas_of(parts);
  return cat(replicas, replicas == 1 ? " replica" : " replicas", " in one process, over ", lanes,
             lanes == 1 ? " lane" : " lanes");
}

}  // namespace lockstep::train
