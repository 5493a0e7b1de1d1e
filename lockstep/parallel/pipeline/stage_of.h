// The layers of a Sequential network that are one stage of a pipeline.
#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <vector>

namespace lockstep::parallel {

// The layers of one of so many stages, with the names that they have in the whole, so that its state dict is a part of
// the whole's. `first_layers`: the number of each stage's first layer; empty: such that the largest number of weights
// of a stage is the least. Throws ConfigError for more stages than layers, or numbers that do not rise from 0.
torch::nn::Sequential stage_of(const torch::nn::Sequential& net, int stages, int stage,
                               std::vector<int> first_layers = {});

}  // namespace lockstep::parallel
