#include "lockstep/optim/memory_order.h"

#include <ATen/ATen.h>

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

}  // namespace lockstep::optim
