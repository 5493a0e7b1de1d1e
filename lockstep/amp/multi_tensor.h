// Lists of tensors scaled, added and measured in one call, as Apex's multi_tensor_apply kernels do. They go over memory
// chunk by chunk, so that what a chunk needs stays in the cache; on GPUs tensor by tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::amp {

// Computes out[i] = in[i] · scale in fp32, or in fp64 where one of the two is fp64. in[i] and out[i] have equal sizes
// and memory formats and any floating-point dtypes; out[i] may be in[i]. Tensors are dense and all on one device.
// Returns whether every in[i] was finite. Throws ConfigError for other tensors.
bool multi_tensor_scale(const std::vector<at::Tensor>& in, const std::vector<at::Tensor>& out, double scale);

// Computes out[i] = a · x[i] + b · y[i], under the same conditions. Returns whether every x[i] and y[i] was finite.
bool multi_tensor_axpby(double a, const std::vector<at::Tensor>& x, double b, const std::vector<at::Tensor>& y,
                        const std::vector<at::Tensor>& out);

// The 2-norm of all elements together, added in fp64, and that of each tensor. It is not finite if an element isn't.
struct Norms {
  double total = 0;
  std::vector<double> each;
};
Norms multi_tensor_l2norm(const std::vector<at::Tensor>& tensors);

}  // namespace lockstep::amp
