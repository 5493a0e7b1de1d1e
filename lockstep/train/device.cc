#include "lockstep/train/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/plugins/nccl_plugin.h"

namespace lockstep::train {

c10::Device open_device(DeviceKind kind, int local_rank) {
  if (kind == DeviceKind::kCpu) return c10::Device(c10::kCPU);
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

std::string backend_for(DeviceKind kind, const std::string& backend) {
  return kind == DeviceKind::kCuda && backend == "auto" ? "nccl" : backend;
}

}  // namespace lockstep::train
