// Gradients as tensors that can be given away: who owns their memory, and the fold of one rank's lanes.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>

#include "lockstep/comm/fold_tree.h"

namespace lockstep::parallel {

// Whether nothing else can see this tensor's memory and the tensor covers all of it, in the layout of `like`: only then
// may it be written to in place, here or by another rank. False for views and for what cat's backward returns.
bool owns_its_memory(const at::Tensor& gradient, const at::Tensor& like);

// The gradient itself where it owns its memory, else a copy of the parameter's layout.
at::Tensor owned(at::Tensor gradient, const at::Tensor& parameter);

// The sum of a parameter's gradients over this rank's lanes, in the order of the fold's tree. With a wire type (of fp32
// gradients) every node is rounded to it, as those between ranks are (comm::FoldOptions).
class LaneSum {
 public:
  explicit LaneSum(std::optional<at::ScalarType> wire = std::nullopt) : wire_(wire) {}

  // Of lane `lane`, counted on this rank; lanes may come in any order. The gradient owns its memory and may be written
  // to. Throws BugError for a lane that has been there.
  void push(size_t lane, at::Tensor gradient);
  void push(at::Tensor gradient) { push(added_, std::move(gradient)); }  // of the next lane
  at::Tensor finish();                                                   // after the last lane

  size_t lanes() const { return added_ + early_.size(); }  // pushed since the last finish()
  bool empty() const { return lanes() == 0; }

 private:
  void add(at::Tensor gradient);

  std::optional<at::ScalarType> wire_;
  comm::LeafFold<at::Tensor> fold_;
  size_t added_ = 0;
  std::map<size_t, at::Tensor> early_;  // of lanes whose turn has not come
};

}  // namespace lockstep::parallel
