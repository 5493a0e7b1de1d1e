// A model's weights and buffers in 16 bits.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <unordered_map>
#include <vector>

#include "lockstep/amp/opt_level.h"

namespace lockstep::amp {

// Casts floating-point parameters and buffers to `dtype`, except those of BatchNorm1d, 2d and 3d if
// `keep_batchnorm_fp32` is set. Tensors keep their identity, so optimizers and hooks that hold one still hold it.
// Gradients are dropped. module.to(at::kFloat) undoes it.
void cast_model(torch::nn::Module& module, c10::ScalarType dtype, bool keep_batchnorm_fp32);

// Does the same for a module's own parameters and buffers, without those of the modules within it.
void cast_module(const torch::nn::Module& module, c10::ScalarType dtype);

// Returns whether the module is a BatchNorm1d, 2d or 3d of libtorch, or derived from one.
bool is_batch_norm(const torch::nn::Module& module);

// The fp32 values that parameters had before they were cast.
using ExactWeights = std::unordered_map<const c10::TensorImpl*, at::Tensor>;

// Casts models as a policy asks for. Returns the values of the weights that were cast, which other ranks may be reading
// where a sharded optimizer shares the weights.
ExactWeights cast_models(const std::vector<torch::nn::Module*>& models, const Policy& policy);

}  // namespace lockstep::amp
