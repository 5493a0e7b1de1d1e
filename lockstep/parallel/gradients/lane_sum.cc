#include "lockstep/parallel/gradients/lane_sum.h"

#include <c10/core/GradMode.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/round_to_wire.h"

namespace lockstep::parallel {
namespace {

// The addition at each node of the tree.
auto adder(std::optional<at::ScalarType> wire) {
  return [wire](at::Tensor left, const at::Tensor& right) {
    const c10::AutoGradMode no_grad(false);
    left.add_(right);
    if (wire) comm::round_to_wire(*wire, left);
    return left;
  };
}

}  // namespace

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
  if (wire_) comm::round_to_wire(*wire_, gradient);
  fold_.push(std::move(gradient), adder(wire_));
  ++added_;
}

at::Tensor LaneSum::finish() {
  if (!early_.empty()) throw BugError("the gradient of lane ", added_, " is missing");
  added_ = 0;
  return fold_.finish(adder(wire_));
}

void LaneSum::clear() {
  fold_ = {};
  added_ = 0;
  early_.clear();
}

std::vector<LaneSum> lane_sums_of(const std::vector<at::Tensor>& tensors, std::optional<at::ScalarType> wire) {
  std::vector<LaneSum> sums;
  for (const auto& tensor : tensors) sums.emplace_back(tensor.scalar_type() == at::kFloat ? wire : std::nullopt);
  return sums;
}

}  // namespace lockstep::parallel
