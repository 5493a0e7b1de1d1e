// The stages that a network is cut into for a pipeline.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/nn/staged.h"

namespace lockstep::parallel {

struct StagePlan {
  std::vector<nn::Layer> layers;  // of the whole network
  std::vector<int> first;         // by stage, its first layer; empty: the network is not cut

  int stages() const { return static_cast<int>(first.size()); }
  size_t end_of(int stage) const;  // past its last layer
  // A stage's parts of the network, and all of its parameters or buffers.
  nn::Stage stage(const torch::nn::Module& network, int stage) const;
  // "layers 1-4, 5-9", counted from 1.
  std::string text() const;
};

// Cuts a network into stages of about equal work: multiplications of a sample's forward, as the sizes of weights and
// outputs tell them, which are the same on all machines. `shape`: of a sample. Throws ConfigError for more stages than
// layers.
StagePlan plan_stages(torch::nn::Module& network, std::vector<nn::Layer> layers, const std::vector<int64_t>& shape,
                      int stages);

// By parameter, the stage that has it. Throws ConfigError for one that no layer has, or several stages.
std::vector<int> stages_of(const StagePlan& plan, const std::vector<at::Tensor>& parameters);

}  // namespace lockstep::parallel
