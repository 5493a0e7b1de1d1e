// A model's weights and buffers in 16 bits.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

#include "lockstep/amp/opt_level.h"
#include "lockstep/optim/any_optimizer.h"

namespace lockstep::amp {

// Casts floating-point parameters and buffers to `dtype`, except those of BatchNorm1d, 2d and 3d if
// `keep_batchnorm_fp32` is set. Tensors keep their identity, so optimizers and hooks that hold one still hold it.
// Gradients are dropped. module.to(at::kFloat) undoes it.
void cast_model(torch::nn::Module& module, c10::ScalarType dtype, bool keep_batchnorm_fp32);

// Does the same for a module's own parameters and buffers, without those of the modules within it.
void cast_module(const torch::nn::Module& module, c10::ScalarType dtype);

// Returns whether the module is a BatchNorm1d, 2d or 3d of libtorch, or derived from one.
bool is_batch_norm(const torch::nn::Module& module);

// Casts a model as a policy asks for. Returns the fp32 values that its weights had, in the order of
// module.parameters(), for give_masters(). They are undefined for weights that were not cast. The list is empty if the
// policy keeps no masters.
std::vector<at::Tensor> apply_policy(torch::nn::Module& module, const Policy& policy);

// Gives the optimizer of those parameters masters with these exact values. An empty list gives it none.
void give_masters(optim::AnyOptimizer& optimizer, const std::vector<at::Tensor>& masters);

}  // namespace lockstep::amp
