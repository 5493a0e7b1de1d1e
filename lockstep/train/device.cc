#include "lockstep/train/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdlib>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/gpus.h"
#include "lockstep/comm/plugins/device_graph.h"
#include "lockstep/comm/plugins/nccl_plugin.h"

namespace lockstep::train {

void open_cuda(const std::string& asked) {
  if (visible_gpus() == 0) throw_no_gpu(asked);
  comm::plugin_symbol(comm::kCudaPlugin, "lockstep_make_nccl_communicator");
}

void require_gpu(const DeviceChoice& device) {
  if (device.on_gpu()) open_cuda("--device " + write_device(device));
}

void let_gpus_repeat(const DeviceChoice& device, bool deterministic) {
  if (!device.on_gpu() || !deterministic) return;
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  setenv("NCCL_ALGO", "^NVLS", /*overwrite=*/0);
}

NodeRanks node_ranks(const World& world, bool may_share) {
  return {.local_rank = world.local_rank(),
          .size = world.place().local_size,
          .may_share = may_share,
          .given = world.place().gpu};
}

c10::Device open_device(const DeviceChoice& device, const NodeRanks& ranks) {
  if (!device.on_gpu()) return c10::Device(c10::kCPU);
  require_gpu(device);
  if (!at::globalContext().hasCUDA()) throw_no_gpu("--device " + write_device(device));
  const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
  const int gpu = choose_gpu(device, ranks, guard.deviceCount());
  const c10::Device opened(c10::kCUDA, static_cast<c10::DeviceIndex>(gpu));
  guard.setDevice(opened);
  return opened;
}

std::vector<c10::Device> devices_of_process(const DeviceChoice& choice, c10::Device own) {
  std::vector<c10::Device> devices = {own};
  if (own.is_cpu() || choice.gpu >= 0) return devices;
  const c10::DeviceIndex visible = c10::impl::VirtualGuardImpl(own.type()).deviceCount();
  for (c10::DeviceIndex i = 0; i < visible; ++i) {
    if (i != own.index()) devices.emplace_back(own.type(), i);
  }
  return devices;
}

comm::MakeDeviceGraph device_graphs(c10::Device device) {
  if (device.is_cpu()) return nullptr;
  auto* const make =
      comm::plugin_function<decltype(lockstep_make_device_graph)>(comm::kCudaPlugin, "lockstep_make_device_graph");
  return [make] { return std::unique_ptr<comm::DeviceGraph>(make()); };
}

std::string backend_for(const DeviceChoice& device, const std::string& backend) {
  return device.on_gpu() && backend == "auto" ? "nccl" : backend;
}

}  // namespace lockstep::train
