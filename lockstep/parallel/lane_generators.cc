#include "lockstep/parallel/lane_generators.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "lockstep/parallel/thread_device.h"

namespace lockstep::parallel {

namespace {

// The current GPU of this thread. A process that has not touched it draws nothing there.
std::optional<c10::Device> gpu_in_use() {
  if (!gpu_type()) return std::nullopt;
  const c10::Device gpu = c10::impl::VirtualGuardImpl(*gpu_type()).getDevice();
  return at::detail::getCUDAHooks().hasPrimaryContext(gpu.index()) ? std::optional(gpu) : std::nullopt;
}

std::vector<c10::Device> devices_drawn_on(const torch::nn::Module& module) {
  std::vector<c10::Device> devices = devices_of(module);
  const auto gpu = gpu_in_use();
  if (gpu && std::find(devices.begin(), devices.end(), *gpu) == devices.end()) devices.push_back(*gpu);
  return devices;
}

}  // namespace

std::vector<c10::Device> devices_of(const torch::nn::Module& module) {
  std::vector<c10::Device> devices = {c10::kCPU};
  const auto add = [&](const at::Tensor& tensor) {
    const bool known = std::find(devices.begin(), devices.end(), tensor.device()) != devices.end();
    if (!known) devices.push_back(tensor.device());
  };
  for (const auto& parameter : module.parameters()) add(parameter);
  for (const auto& buffer : module.buffers()) add(buffer);
  return devices;
}

LaneGenerators::LaneGenerators(const torch::nn::Module& module) : LaneGenerators(devices_drawn_on(module)) {}

LaneGenerators::LaneGenerators(const std::vector<c10::Device>& devices) {
  for (const c10::Device& device : devices) generators_.push_back(at::globalContext().defaultGenerator(device));
}

void LaneGenerators::seed(uint64_t seed) {
  for (auto& generator : generators_) {
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

bool LaneGenerators::enter(size_t turn) {
  if (left_[turn].empty()) return false;
  set_states(left_[turn]);
  return true;
}

std::vector<at::Tensor> LaneGenerators::states() const {
  std::vector<at::Tensor> states;
  for (const auto& generator : generators_) states.push_back(generator.get_state());
  return states;
}

void LaneGenerators::set_states(const std::vector<at::Tensor>& states) {
  for (size_t i = 0; i < states.size(); ++i) generators_[i].set_state(states[i]);
}

}  // namespace lockstep::parallel
