// The factor by which the losses of a step are multiplied before backward.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/parallel/mixed_networks.h"

namespace lockstep::parallel {

// A number, or the scale that MixedPrecision has for a loss.
struct LossScale {
  double factor = 1;  // without `mixed`, whose loss has its own
  const amp::MixedPrecision* mixed = nullptr;
  int loss_id = amp::FoldedGradients::kNoLoss;

  double now() const { return mixed != nullptr ? mixed->loss_scale(loss_id) : factor; }
  // Throws ConfigError for a network that was not given to `mixed`.
  void check(const torch::nn::Module& network, int64_t step) const {
    if (mixed != nullptr) check_given(network, *mixed, step);
  }
};

// The loss times a factor, a number or a tensor of one. A loss in 16 bits times its scale may be too large for them, so
// it becomes fp32.
template <typename Factor>
at::Tensor scaled_loss(const at::Tensor& loss, const Factor& factor) {
  return (loss.element_size() < 4 ? loss.to(at::kFloat) : loss) * factor;
}

}  // namespace lockstep::parallel
