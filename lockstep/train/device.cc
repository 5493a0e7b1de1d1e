#include "lockstep/train/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/plugins/nccl_plugin.h"

namespace lockstep::train {

c10::Device open_device(config::DeviceKind kind, int local_rank) {
  if (kind == config::DeviceKind::kCpu) return c10::Device(c10::kCPU);
  comm::plugin_symbol(comm::kCudaPlugin, "lockstep_make_nccl_communicator");
  if (!at::globalContext().hasCUDA()) {
    throw ConfigError(
        "--device cuda: no GPU can be used here; lockstep doctor says more. Leave --device out for the CPU");
  }
  const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(local_rank % guard.deviceCount()));
  guard.setDevice(device);
  return device;
}

std::string backend_for(config::DeviceKind kind, config::BackendKind backend) {
  const bool gpus = kind == config::DeviceKind::kCuda && backend == config::BackendKind::kAuto;
  return gpus ? "nccl" : std::string(config::to_string(backend));
}

}  // namespace lockstep::train
