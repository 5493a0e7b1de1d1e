#include "lockstep/parallel/gradients/ownership.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

namespace lockstep::parallel {

bool owns_its_memory(const at::Tensor& gradient, const at::Tensor& like) {
  if (gradient.layout() != at::kStrided) return false;
  const auto& storage = gradient.storage();
  return storage.use_count() == 1 && gradient.storage_offset() == 0 && storage.nbytes() == gradient.nbytes() &&
         gradient.strides() == like.strides() && gradient.is_non_overlapping_and_dense();
}

at::Tensor owned(at::Tensor gradient, const at::Tensor& parameter) {
  if (owns_its_memory(gradient, parameter)) return gradient;
  const c10::AutoGradMode no_grad(false);
  const at::Tensor dense = gradient.layout() == at::kStrided ? gradient : gradient.to_dense();
  return at::empty_like(parameter, dense.options()).copy_(dense);
}

void own_gradient(const at::Tensor& parameter) {
  at::Tensor& gradient = parameter.mutable_grad();
  if (!gradient.defined() || gradient.layout() != at::kStrided) return;
  if (gradient.storage().use_count() > 1) gradient = gradient.clone();
}

}  // namespace lockstep::parallel
