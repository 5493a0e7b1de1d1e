// A model's weights and buffers in 16 bits, as Apex's fp16_utils make them.
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

// Apex's network_to_half: all of it but BatchNorm.
inline void network_to_half(torch::nn::Module& module, c10::ScalarType dtype = c10::ScalarType::Half) {
  cast_model(module, dtype, /*keep_batchnorm_fp32=*/true);
}

// Does to a model what a policy asks for. Returns the fp32 values that its weights had, in the order of
// module.parameters(), for give_masters(); undefined for weights that were not cast, and empty where the policy keeps
// no masters.
std::vector<at::Tensor> apply_policy(torch::nn::Module& module, const Policy& policy);

// Gives the optimizer of those parameters its masters, if there are to be any: of these exact values.
void give_masters(optim::AnyOptimizer& optimizer, const std::vector<at::Tensor>& masters);

}  // namespace lockstep::amp
