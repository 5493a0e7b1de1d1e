// The passes over whole tensors that make up BatchNorm: by our own kernels where the tensor's layout allows it, else by
// libtorch's operations, on the CPU in fp64, on other devices in fp32 (device_passes.h). Everything about a channel is
// fp64, on the tensor's device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lockstep/nn/batch_norm.h"

namespace lockstep::nn {

// Whether our own kernels take x: a CPU tensor of fp32, bf16 or fp16 that is not empty, its channels innermost.
bool has_kernels(const at::Tensor& x);

Moments moments_of(const at::Tensor& x);
Moments no_moments(const at::Tensor& x);  // of an input without values

// The rows of an affine map [3, C]: z = (x - mean) · scale + bias.
enum AffineRow { kMean, kScale, kBias };

// activation(z + residual), laid out as x is. residual: like x, or undefined.
at::Tensor normalised(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& affine, Activation activation);

// The inputs of backward for one use; dy and y are laid out as x. In the passes below g is dy where the activation lets
// it through, else 0; y tells which where it is defined, else z.
struct BackwardInputs {
  at::Tensor dy, x, y, affine;
  Activation activation;
};

// [2, C]: Σg and Σg·(x - mean). Writes g to `masked` unless that is null.
at::Tensor gradient_sums(const BackwardInputs& inputs, at::Tensor* masked);

// g · scale + (x - mean) · slope + offset, where `line` [2, C] holds slope and offset.
at::Tensor input_gradient(const BackwardInputs& inputs, const at::Tensor& line);

// g in fp64 by libtorch's operations, differentiable by dy.
at::Tensor masked_gradient(const BackwardInputs& inputs);

// [C] viewed as [1, C, 1, …] of as many dimensions as x has, and x's dimensions other than the channels'.
at::Tensor spread(const at::Tensor& of_channels, const at::Tensor& x);
std::vector<int64_t> all_but_channels(const at::Tensor& x);

}  // namespace lockstep::nn
