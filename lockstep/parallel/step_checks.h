// Mistakes in a loop of one's own that a step finds at no cost: weights that were changed on some ranks only, and
// losses that are none.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

namespace lockstep::parallel {

// A number that depends on the bits of some elements of each weight on the CPU: a whole one below 2^40, so that those
// of thousands of ranks can be added exactly.
double fingerprint(const std::vector<at::Tensor>& weights);

// A number that depends on which of a network's modules are in training mode: a whole one, as above.
double modes_of(const torch::nn::Module& network);

// Throws ConfigError unless `sum`, that of all ranks' fingerprints, is `ranks` times this rank's own.
void check_same_weights(double own, double sum, int ranks, const std::string& whose);

// Throws ConfigError unless backward can begin from `loss`: a defined tensor of one floating-point element with a
// graph, in memory. `whose`: "step 3, lane 2".
void check_loss(const at::Tensor& loss, const std::string& whose);

}  // namespace lockstep::parallel
