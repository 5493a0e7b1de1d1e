#include "lockstep/compat/apex/parallel.h"

#include <c10/core/GradMode.h>

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/parallel/sync_batch_norm.h"

namespace lockstep::apex::parallel {

lockstep::parallel::DdpOptions resolve(const DistributedDataParallelOptions& options) {
  if (options.message_size < 1) {
    throw ConfigError("DistributedDataParallel: message_size ", options.message_size, ": expected 1 or more");
  }
  if (options.delay_allreduce && !options.allreduce_trigger_params.empty()) {
    throw ConfigError(
        "DistributedDataParallel: allreduce_trigger_params sends buckets while backward runs, delay_allreduce "
        "afterwards; give only one of them");
  }
  const double mebibytes = static_cast<double>(options.message_size) * sizeof(float) / (1 << 20);
  return {.buckets = {.bucket_mb = mebibytes, .first_bucket_mb = mebibytes},
          .gradient_average = options.gradient_average,
          .delay_allreduce = options.delay_allreduce,
          .allreduce_always_fp32 = options.allreduce_always_fp32,
          .gradient_predivide_factor = options.gradient_predivide_factor,
          .bucket_ends = options.allreduce_trigger_params};
}

DistributedDataParallel::DistributedDataParallel(std::shared_ptr<torch::nn::Module> module,
                                                 std::shared_ptr<World> world,
                                                 const DistributedDataParallelOptions& options)
    : lockstep::parallel::DistributedDataParallel(std::move(module), std::move(world), resolve(options)) {}

void DistributedDataParallel::disable_allreduce() {
  if (!paused_) paused_.emplace(*this);
}

Reducer::Reducer(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<World> world)
    : module_(std::move(module)), world_(std::move(world)), fold_(*module_, world_->communicator()) {}

void Reducer::reduce() {
  fold_.run();
  const c10::AutoGradMode no_grad(false);
  for (const at::Tensor& parameter : fold_.parameters()) {
    if (parameter.grad().defined()) parameter.mutable_grad().div_(world_->size());
  }
}

std::vector<int> create_syncbn_process_group(const World& world, int group_size) {
  if (group_size == 0) return {};
  if (group_size < 0 || world.size() % group_size != 0) {
    throw ConfigError("create_syncbn_process_group: group_size ", group_size, " does not divide ", world.size(),
                      " ranks");
  }
  std::vector<int> ranks;
  const int first = world.rank() / group_size * group_size;
  for (int rank = first; rank < first + group_size; ++rank) ranks.push_back(rank);
  return ranks;
}

void convert_syncbn_model(torch::nn::Module& module, World& world, const std::vector<int>& process_group) {
  lockstep::parallel::convert_sync_batchnorm(module, world.communicator(), process_group);
}

}  // namespace lockstep::apex::parallel
