#include "lockstep/parallel/distributed_data_parallel.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/zeros.h>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"
#include "lockstep/parallel/model_check.h"

namespace lockstep::parallel {
namespace {

std::vector<NamedParameter> parameters_of(const torch::nn::Module& module) {
  std::vector<NamedParameter> parameters;
  for (const auto& item : module.named_parameters()) parameters.push_back({item.key(), item.value()});
  if (parameters.empty()) throw ConfigError("DistributedDataParallel: the module has no parameters");
  return parameters;
}

// All ranks hold one model before the first of them is used.
std::shared_ptr<torch::nn::Module> agree(std::shared_ptr<torch::nn::Module> module, comm::Communicator& comm,
                                         const DdpOptions& options) {
  check_same_model(
      *module,
      {cat("bucket_mb ", options.buckets.bucket_mb), cat("first_bucket_mb ", options.buckets.first_bucket_mb),
       cat("seed ", options.seed), cat("wire ", options.buckets.wire ? c10::toString(*options.buckets.wire) : "none")},
      comm);
  if (!options.broadcast_state) return module;
  for (const auto& parameter : module->parameters()) comm.broadcast(parameter, 0);
  for (const auto& buffer : module->buffers()) comm.broadcast(buffer, 0);
  return module;
}

void seed_kernels(uint64_t seed, const StepPlan& step, int lane) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(kernel_seed(seed, static_cast<uint64_t>(step.number), static_cast<uint32_t>(lane)));
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(std::shared_ptr<torch::nn::Module> module,
                                                 std::shared_ptr<comm::World> world, const DdpOptions& options)
    : module_(agree(std::move(module), world->communicator(), options)),
      world_(std::move(world)),
      options_(options),
      buffers_(*module_),
      reducer_(parameters_of(*module_), world_->communicator(), options.buckets) {}

StepResult DistributedDataParallel::run(const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of,
                                        double loss_scale, double decision) {
  auto& comm = world_->communicator();
  try {
    reducer_.set_scale(1);
    buffers_.begin_step(comm);
    if (step.lanes.empty()) throw ConfigError("step ", step.number, ": rank ", world_->rank(), " has no lanes");
    comm::LeafFold<double> losses;
    const auto add = [](double a, double b) { return a + b; };
    for (size_t i = 0; i < step.lanes.size(); ++i) losses.push(run_lane(step, i, loss_of, loss_scale), add);
    buffers_.end_step();
    // What else a step tells all ranks travels with its fold.
    const at::Tensor notes = at::zeros({3}, at::kDouble);
    auto* note = notes.mutable_data_ptr<double>();
    note[0] = losses.finish(add);
    note[1] = world_->rank() == 0 ? decision : 0;
    for (const auto& lane : step.lanes) note[2] += static_cast<double>(lane.samples);
    const auto told = comm.fold({notes}, {.label = "the step's loss", .square_sums = {}});
    reducer_.finish();
    told->wait();
    if (note[2] != static_cast<double>(step.samples)) {
      throw ConfigError("step ", step.number, ": the lanes of all ranks hold ", note[2], " samples, the global batch ",
                        step.samples, "; every lane must be some rank's");
    }
    return {.loss = note[0], .square_sum = reducer_.square_sum(), .decision = note[1]};
  } catch (const std::exception& error) {
    reducer_.drop();
    comm.abort(error.what());
    throw;
  }
}

// Forward and backward of one lane. Returns its share of the global batch's mean loss.
double DistributedDataParallel::run_lane(const StepPlan& step, size_t lane,
                                         const std::function<at::Tensor(size_t)>& loss_of, double loss_scale) {
  const bool last = lane + 1 == step.lanes.size();
  const auto [index, samples] = step.lanes[lane];
  if (samples == 0) {
    reducer_.empty_lane(last);
    return 0;
  }
  const double weight = static_cast<double>(samples) / static_cast<double>(step.samples);
  seed_kernels(options_.seed, step, index);
  if (lane > 0) buffers_.begin_lane();
  reducer_.begin_lane(last);
  const at::Tensor loss = loss_of(lane);
  const double factor = weight * loss_scale;
  (factor == 1 ? loss : loss * factor).backward();
  buffers_.end_lane(index);
  return weight * loss.item<double>();
}

void DistributedDataParallel::backward(const at::Tensor& loss) {
  const bool last = no_sync_ == 0;
  try {
    reducer_.set_scale(1.0 / world_->size());
    reducer_.begin_lane(last);
    loss.backward();
    buffers_.mark_changed();
    if (last) reducer_.finish();
  } catch (const std::exception& error) {
    reducer_.drop();
    world_->communicator().abort(error.what());
    throw;
  }
}

}  // namespace lockstep::parallel
