#include "lockstep/parallel/gradients.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/reduce.h"

namespace lockstep::parallel {
namespace {

void round_to(at::ScalarType wire, at::Tensor& gradient) {
  if (gradient.is_cpu()) {
    comm::round_to_wire(wire, gradient.mutable_data_ptr<float>(), gradient.numel());
  } else {
    gradient.copy_(gradient.to(wire));
  }
}

// What LeafFold adds with.
auto adder(std::optional<at::ScalarType> wire) {
  return [wire](at::Tensor left, const at::Tensor& right) {
    const c10::AutoGradMode no_grad(false);
    left.add_(right);
    if (wire) round_to(*wire, left);
    return left;
  };
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

void LaneSum::push(size_t lane, at::Tensor gradient) {
  if (lane < added_ || early_.contains(lane)) throw BugError("lane ", lane, " has given its gradient already");
  if (lane > added_) {
    early_.emplace(lane, std::move(gradient));
    return;
  }
  add(std::move(gradient));
  for (auto next = early_.find(added_); next != early_.end(); next = early_.find(added_)) {
    add(std::move(next->second));
    early_.erase(next);
  }
}

void LaneSum::add(at::Tensor gradient) {
  if (wire_) round_to(*wire_, gradient);
  fold_.push(std::move(gradient), adder(wire_));
  ++added_;
}

at::Tensor LaneSum::finish() {
  if (!early_.empty()) throw BugError("the gradient of lane ", added_, " is missing");
  added_ = 0;
  return fold_.finish(adder(wire_));
}

}  // namespace lockstep::parallel
