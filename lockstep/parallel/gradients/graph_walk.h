// Walks over a loss's autograd graph that tell how the loss depends on the parameters.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <vector>

namespace lockstep::parallel {

// Returns, by parameter, whether backward from `losses` will reach it. Parameters are leaves that require gradients.
std::vector<bool> reached_parameters(const std::vector<at::Tensor>& losses, const std::vector<at::Tensor>& parameters);

// Returns the leaves that backward from the loss will give gradients.
std::vector<at::Tensor> leaves_of(const at::Tensor& loss);

// Returns, by parameter, the graph node that casts it to another type, if the loss depends on the parameter through
// that node alone: autocast casts a weight once for all its uses. Null for other parameters, and for those whose
// gradient has a hook.
std::vector<std::shared_ptr<torch::autograd::Node>> lone_casts(const at::Tensor& loss,
                                                               const std::vector<at::Tensor>& parameters);

}  // namespace lockstep::parallel
