#include "lockstep/optim/memory_order.h"

#include <ATen/ATen.h>

#include "lockstep/base/error.h"

namespace lockstep::optim {

bool same_memory_order(const at::Tensor& a, const at::Tensor& b) {
  const at::IntArrayRef sizes = a.sizes();
  const at::IntArrayRef a_strides = a.strides();
  const at::IntArrayRef b_strides = b.strides();
  if (sizes != b.sizes()) return false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && a_strides[d] != b_strides[d]) return false;
  }
  return true;
}

at::Tensor laid_out_as(const at::Tensor& model, const at::Tensor& tensor) {
  if (tensor.scalar_type() == model.scalar_type() && same_memory_order(model, tensor)) return tensor;
  return at::empty_like(model).copy_(tensor);
}

at::Tensor ordered_as(const at::Tensor& model, const at::Tensor& tensor, CopyElements copy) {
  if (same_memory_order(model, tensor)) return tensor;
  at::Tensor ordered = at::empty_like(model, model.options().dtype(tensor.scalar_type()));
  copy({{ordered, tensor}});
  return ordered;
}

at::Tensor gradient_for(std::string_view optimizer, const at::Tensor& parameter) {
  const at::Tensor& gradient = parameter.grad();
  if (gradient.is_sparse()) return laid_out_as(parameter, gradient.to_dense());
  if (gradient.layout() != at::kStrided) {
    throw ConfigError(optimizer, ": a parameter of shape ", parameter.sizes(), " has a gradient of layout ",
                      gradient.layout(), "; only dense and COO ones can be taken");
  }
  return laid_out_as(parameter, gradient);
}

at::Tensor memory_of(const at::Tensor& dense) { return dense.detach().as_strided({dense.numel()}, {1}); }

}  // namespace lockstep::optim
