// The eval mode of networks for the length of a scope.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <utility>
#include <vector>

namespace lockstep::nn {

// Puts these modules, with all that is in them, into eval mode as long as the object lives. Each of their submodules
// then gets its own mode back: a layer that was frozen by eval() stays frozen. The modules outlive it.
class EvalMode {
 public:
  explicit EvalMode(const std::vector<torch::nn::Module*>& modules) {
    for (auto* module : modules) {
      module->apply([&](torch::nn::Module& each) { before_.emplace_back(&each, each.is_training()); });
      module->eval();
    }
  }
  // train() of a module sets those within it too, which come later in the list.
  ~EvalMode() {
    for (const auto& [module, training] : before_) module->train(training);
  }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  std::vector<std::pair<torch::nn::Module*, bool>> before_;
};

}  // namespace lockstep::nn
