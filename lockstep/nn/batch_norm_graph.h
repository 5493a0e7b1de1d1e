// BatchNorm's backward of libtorch's operations, which autograd can differentiate once more: a gradient penalty.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "lockstep/nn/activation.h"
#include "lockstep/nn/batch_norm.h"

namespace lockstep::nn {

// What one use has saved. x and weight come with their graphs, dy as the later layers have given it.
struct SavedUse {
  at::Tensor dy, x;
  at::Tensor y;               // undefined where the activation's derivative is taken from x
  at::Tensor weight;          // [C], or undefined
  at::Tensor affine, invstd;  // fp64 (AffineRow), [C]
  Activation activation;
  double eps;
  at::Tensor count;  // of values a channel over all lanes, fp64 [1]; undefined: normalised by the running statistics
  std::shared_ptr<StatisticsExchange> exchange;
};

struct DifferentiableGradients {
  at::Tensor dx;    // like x
  at::Tensor sums;  // fp64 [2, C]: Σg and Σg·x̂ of the lane's own values, the gradients of bias and weight
  at::Tensor g;     // like x: the gradient of the residual
};

// Called with gradients enabled. A collective of the lanes where there is an exchange, as their derivatives are.
DifferentiableGradients differentiable_gradients(const SavedUse& use);

}  // namespace lockstep::nn
