#include "lockstep/compat/torch/data_parallel.h"

#include "lockstep/base/error.h"

namespace lockstep::pytorch {

lockstep::parallel::DdpOptions resolve(const DistributedDataParallelOptions& options) {
  lockstep::parallel::DdpOptions resolved{.broadcast_state = options.init_sync,
                                          .broadcast_buffers = options.broadcast_buffers,
                                          .find_unused_parameters = options.find_unused_parameters,
                                          .static_graph = options.static_graph};
  if (options.bucket_cap_mb) {
    if (!(*options.bucket_cap_mb > 0)) {
      throw ConfigError("DistributedDataParallel: bucket_cap_mb ", *options.bucket_cap_mb, ": expected above 0");
    }
    resolved.buckets.bucket_mb = resolved.buckets.first_bucket_mb = *options.bucket_cap_mb;
  }
  return resolved;
}

std::optional<c10::Device> input_device(const DistributedDataParallelOptions& options,
                                        const torch::nn::Module& module) {
  if (options.device_ids.empty()) return std::nullopt;
  if (options.device_ids.size() > 1) {
    throw ConfigError("DistributedDataParallel: device_ids has ", options.device_ids.size(),
                      " devices; a process has one, or leaves device_ids out for a module on several");
  }
  const c10::Device device = options.device_ids[0].device;
  for (const auto& item : module.named_parameters()) {
    if (item.value().device() == device) continue;
    throw ConfigError("DistributedDataParallel: device_ids is ", device, ", and ", item.key(), " is on ",
                      item.value().device(), "; move the module there before, or leave device_ids out");
  }
  return device;
}

}  // namespace lockstep::pytorch
