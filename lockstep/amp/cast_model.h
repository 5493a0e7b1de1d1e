// A model's weights and buffers in 16 bits.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

#include "lockstep/amp/opt_level.h"
#include "lockstep/optim/any_optimizer.h"

namespace lockstep::amp {

// Casts floating-point parameters and buffers to `dtype`, except those of BatchNorm1d, 2d and 3d if their statistics
// are to stay exact. Tensors keep their identity, so an optimizer or hook that has one still has it; gradients are
// dropped. Undone by module.to(at::kFloat).
void cast_model(torch::nn::Module& module, c10::ScalarType dtype, bool keep_batchnorm_fp32);

// The same for a module's own parameters and buffers, without those of the modules within it.
void cast_module(const torch::nn::Module& module, c10::ScalarType dtype);

// Whether it is a BatchNorm1d, 2d or 3d, of libtorch or derived from those.
bool is_batch_norm(const torch::nn::Module& module);

// Does to a model what a policy asks for. Returns the fp32 values that its weights had, in the order of
// module.parameters(), for give_masters(); undefined for weights that were not cast, and empty where the policy keeps
// no masters.
std::vector<at::Tensor> apply_policy(torch::nn::Module& module, const Policy& policy);

// Gives the optimizer of those parameters its masters, if there are to be any: of these exact values.
void give_masters(optim::AnyOptimizer& optimizer, const std::vector<at::Tensor>& masters);

}  // namespace lockstep::amp
