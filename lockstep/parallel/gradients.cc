#include "lockstep/parallel/gradients.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

namespace lockstep::parallel {
namespace {

at::Tensor add(at::Tensor left, const at::Tensor& right) {
  const c10::AutoGradMode no_grad(false);
  return left.add_(right);
}

}  // namespace

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

void LaneSum::push(at::Tensor gradient) { fold_.push(std::move(gradient), add); }

at::Tensor LaneSum::finish() { return fold_.finish(add); }

}  // namespace lockstep::parallel
