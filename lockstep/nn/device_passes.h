// The passes of batch_norm_passes.h on other devices than the CPU, by libtorch's BatchNorm kernels for given
// statistics.
//
// They compute in fp32 (fp64 inputs in fp64) and round when they store. Nothing waits for the device. A pass makes at
// most one tensor of x's size beside its result. The kernels are those of libtorch that the CPU has as well, where
// tests compare them with the exact passes.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/nn/batch_norm_passes.h"

namespace lockstep::nn::device {

// Whether x goes through these passes: it is not on the CPU.
bool takes(const at::Tensor& x);

// For tests: while one lives, these passes take tensors of the CPU, too.
class TakesAll {
 public:
  TakesAll();
  ~TakesAll();
  TakesAll(const TakesAll&) = delete;
  TakesAll& operator=(const TakesAll&) = delete;
};

Moments moments_of(const at::Tensor& x);
// The residual and the activation are applied to the rounded values, as by libtorch's layers one after the other.
at::Tensor normalised(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& affine, Activation activation);
at::Tensor gradient_sums(const BackwardInputs& inputs, at::Tensor* masked);
at::Tensor input_gradient(const BackwardInputs& inputs, const at::Tensor& line);

}  // namespace lockstep::nn::device
