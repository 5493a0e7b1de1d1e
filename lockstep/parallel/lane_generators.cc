#include "lockstep/parallel/lane_generators.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <mutex>

namespace lockstep::parallel {

LaneGenerators::LaneGenerators(const torch::nn::Module& module) : generators_({at::detail::getDefaultCPUGenerator()}) {
  const at::Device device = module.parameters()[0].device();
  if (!device.is_cpu()) generators_.push_back(at::globalContext().defaultGenerator(device));
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
