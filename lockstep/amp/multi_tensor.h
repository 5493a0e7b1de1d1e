// Lists of tensors scaled, added and measured in one call, as Apex's multi_tensor_apply kernels do. They go over memory
// chunk by chunk, so that what a chunk needs stays in the cache; on GPUs tensor by tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <vector>

namespace lockstep::amp {

// What an optimizer steps, through all its groups, and those gradients of it that there are: lists for the functions
// below.
std::vector<at::Tensor> parameters_of(const torch::optim::Optimizer& optimizer);
std::vector<at::Tensor> gradients_of(const torch::optim::Optimizer& optimizer);

// out[i] = in[i] · scale, computed in fp32, or in fp64 where one is that; floating-point dtypes of in and out are free,
// sizes equal, out[i] may be in[i]. Returns whether every in[i] was finite. Tensors dense, pairs of one memory format,
// all on one device. ConfigError otherwise.
bool multi_tensor_scale(const std::vector<at::Tensor>& in, const std::vector<at::Tensor>& out, double scale);

// out[i] = a · x[i] + b · y[i], under the same conditions. Returns whether every x[i] and y[i] was finite.
bool multi_tensor_axpby(double a, const std::vector<at::Tensor>& x, double b, const std::vector<at::Tensor>& y,
                        const std::vector<at::Tensor>& out);

// The 2-norm of all elements together, added in fp64, and of each tensor. Not finite if an element isn't.
struct Norms {
  double total = 0;
  std::vector<double> each;
};
Norms multi_tensor_l2norm(const std::vector<at::Tensor>& tensors);

}  // namespace lockstep::amp
