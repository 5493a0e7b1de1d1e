#include "lockstep/train/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/plugins/nccl_plugin.h"

namespace lockstep::train {

namespace {

[[noreturn]] void throw_no_gpu() {
  throw ConfigError(
      "--device cuda: no GPU can be used here; lockstep doctor says more. Leave --device out for the CPU");
}

}  // namespace

int gpus_of_driver(const char* library) {
  struct Close {
    void operator()(void* handle) const { dlclose(handle); }
  };
  const std::unique_ptr<void, Close> driver(dlopen(library, RTLD_NOW | RTLD_LOCAL));
  if (!driver) return 0;
  auto* const init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver.get(), "cuInit"));
  auto* const count = reinterpret_cast<int (*)(int*)>(dlsym(driver.get(), "cuDeviceGetCount"));
  int gpus = 0;
  return init != nullptr && count != nullptr && init(0) == 0 && count(&gpus) == 0 ? gpus : 0;
}

void require_gpu(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return;
  if (gpus_of_driver() == 0) throw_no_gpu();
  comm::plugin_symbol(comm::kCudaPlugin, "lockstep_make_nccl_communicator");
}

void let_cublas_repeat(DeviceKind kind, bool deterministic) {
  if (kind == DeviceKind::kCuda && deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

c10::Device open_device(DeviceKind kind, int local_rank) {
  if (kind == DeviceKind::kCpu) return c10::Device(c10::kCPU);
  require_gpu(kind);
  if (!at::globalContext().hasCUDA()) throw_no_gpu();
  const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(local_rank % guard.deviceCount()));
  guard.setDevice(device);
  return device;
}

std::string backend_for(DeviceKind kind, const std::string& backend) {
  return kind == DeviceKind::kCuda && backend == "auto" ? "nccl" : backend;
}

}  // namespace lockstep::train
