// The four passes over whole tensors that BatchNorm is made of, by kernels of ours where the tensor's layout allows,
// by libtorch's operations where it doesn't. Everything about a channel is fp64, on the tensor's device.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/nn/batch_norm.h"

namespace lockstep::nn {

// Whether kernels of ours go over x: a CPU tensor of fp32, bf16 or fp16 with values, its channels innermost.
bool has_kernels(const at::Tensor& x);

Moments moments_of(const at::Tensor& x);

// Rows of [3, C]: z = (x - mean) · scale + bias.
enum AffineRow { kMean, kScale, kBias };

// activation(z + residual), as x is laid out. residual: as x, or undefined.
at::Tensor normalised(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& affine, Activation activation);

// What backward knows of one use; dy and y are laid out as x. g: dy where the activation lets it through, by y where it
// is defined, else by z.
struct BackwardInputs {
  at::Tensor dy, x, y, affine;
  Activation activation;
};

// [2, C]: Σg and Σg·(x - mean). If `masked` is not null, g goes there.
at::Tensor gradient_sums(const BackwardInputs& inputs, at::Tensor* masked);

// g · scale + (x - mean) · slope + offset, where `line` [2, C] is slope and offset.
at::Tensor input_gradient(const BackwardInputs& inputs, const at::Tensor& line);

}  // namespace lockstep::nn
