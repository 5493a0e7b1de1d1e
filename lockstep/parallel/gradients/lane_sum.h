// The sum of one parameter's gradients over the lanes of this rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <vector>

#include "lockstep/comm/fold_tree.h"

namespace lockstep::parallel {

// Adds gradients in the order of the fold's tree, whatever order the lanes come in. With a wire type, for fp32
// gradients alone, every node is rounded to it, as nodes between ranks are (comm::FoldOptions).
class LaneSum {
 public:
  explicit LaneSum(std::optional<at::ScalarType> wire = std::nullopt) : wire_(wire) {}

  // Adds the gradient of lane `lane`, counted on this rank. The gradient owns its memory and may be written to.
  // Throws BugError for a lane that has already been added.
  void push(size_t lane, at::Tensor gradient);
  // Returns the sum after the last lane, and begins anew. Throws BugError if a lane is missing.
  at::Tensor finish();
  void clear();  // forgets the lanes so far

  size_t lanes() const { return added_ + early_.size(); }  // pushed since the last finish()
  bool has(size_t lane) const { return lane < added_ || early_.contains(lane); }

 private:
  void add(at::Tensor gradient);

  std::optional<at::ScalarType> wire_;
  comm::LeafFold<at::Tensor> fold_;
  size_t added_ = 0;
  std::map<size_t, at::Tensor> early_;  // by lane: gradients that wait for those of earlier lanes
};

// A sum for each of these tensors. The wire type is for those of fp32.
std::vector<LaneSum> lane_sums_of(const std::vector<at::Tensor>& tensors, std::optional<at::ScalarType> wire);

}  // namespace lockstep::parallel
