// Clips gradients by their norm over all parameters, as torch.nn.utils.clip_grad_norm_ does.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

namespace lockstep::optim {

// The factor that brings gradients of 2-norm `total_norm` to at most `max_norm` >= 0: max_norm / (total_norm + 1e-6),
// never above 1. An infinite norm gives 0, NaN gives NaN.
double clip_factor(double total_norm, double max_norm);

// Clips the gradients of `parameters` in place and returns their norm before; parameters without a gradient are
// skipped, and one that comes twice counts once. Equal rows of sparse gradients are added up. For a loop without loss
// scaling and without the fold, which brings a norm of its own. Throws ConfigError for a negative max_norm, and for
// gradients with a loss scale in them.
double clip_grad_norm(std::span<const at::Tensor> parameters, double max_norm);
// The same by another norm, such as one over ranks, which `norm_of` computes once no two gradients share memory.
double clip_grad_norm(std::span<const at::Tensor> parameters, double max_norm, const std::function<double()>& norm_of);

// Clamps each element of the gradients to [-clip_value, clip_value], as torch.nn.utils.clip_grad_value_ does. The rest
// is as in clip_grad_norm.
void clip_grad_value(std::span<const at::Tensor> parameters, double clip_value);

// The gradients of `parameters` without the undefined ones, each once; of a sparse one the values, after equal rows
// were added up in .grad. They share memory with .grad, and none with each other: libtorch may leave one memory in two
// .grad, or a part of it, which would be scaled twice in place. The second one gets memory of its own.
std::vector<at::Tensor> gradients_of(std::span<const at::Tensor> parameters);

}  // namespace lockstep::optim
