// Gradient clipping by the norm of all gradients together, as torch.nn.utils.clip_grad_norm_.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace lockstep::optim {

// What gradients of 2-norm `total_norm` are multiplied by so that it comes to `max_norm` at most: max_norm /
// (total_norm + 1e-6), never above 1. An infinite norm gives 0, NaN gives NaN. max_norm >= 0.
double clip_factor(double total_norm, double max_norm);

// Clips the gradients of `parameters` in place and returns their norm before; parameters without one are left out.
// For a loop without loss scaling or fold, which brings a norm of its own. Throws ConfigError for a negative max_norm.
double clip_grad_norm(std::span<const at::Tensor> parameters, double max_norm);

}  // namespace lockstep::optim
