#include "lockstep/nn/predicted_classes.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/softmax.h>

namespace lockstep::nn {

at::Tensor predicted_classes(const at::Tensor& scores, int64_t dim) {
  if (is_sigmoid(scores.size(dim))) return scores.select(dim, 0).gt(0).to(at::kLong);
  return scores.argmax(dim);
}

at::Tensor class_probabilities(const at::Tensor& scores, int64_t dim) {
  const at::Tensor precise = scores.to(at::kDouble);
  if (is_sigmoid(scores.size(dim))) return at::cat({(-precise).sigmoid(), precise.sigmoid()}, dim);
  return precise.softmax(dim);
}

}  // namespace lockstep::nn
