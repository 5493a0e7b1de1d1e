// What a loss's graph says of the parameters: a walk over it, as find_unused_parameters makes it.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <vector>

namespace lockstep::parallel {

// By parameter, whether backward from `losses` will reach it. Parameters are leaves that require gradients.
std::vector<bool> reached_parameters(const std::vector<at::Tensor>& losses, const std::vector<at::Tensor>& parameters);

// By parameter, the node that casts it to another type (as autocast does, once for all that use it), if the loss
// depends on the parameter through that alone; null for others, and for a parameter whose gradient someone has hooked.
std::vector<std::shared_ptr<torch::autograd::Node>> lone_casts(const at::Tensor& loss,
                                                               const std::vector<at::Tensor>& parameters);

}  // namespace lockstep::parallel
