// The fold: a sum of the lanes' values in the order of one fixed binary tree over lane numbers.
//
// The left part of a tree of n leaves has as many leaves as the largest power of two below n. Each of W ranks owns a
// contiguous block of S/W of the S lanes. Where S/W is a power of two, each block is a subtree: ranks fold their own
// lanes first and then each other's results, and every addition is the same one at any world size.
#pragma once

#include <c10/util/SmallVector.h>

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep::comm {

// Leaves in the left part of a tree of n >= 2 leaves.
constexpr size_t left_part(size_t n) { return std::bit_floor(n - 1); }

// The leaves [first, first + count) below one node of the tree.
struct Subtree {
  int first, count;
  bool operator==(const Subtree&) const = default;
};

// The maximal subtrees of the tree over owned.size() leaves that consist of owned leaves alone, in the tree's order.
inline std::vector<Subtree> maximal_subtrees(const std::vector<bool>& owned) {
  std::vector<Subtree> found;
  const auto visit = [&](const auto& self, int first, int count) -> void {
    int own = 0;
    for (int leaf = first; leaf < first + count; ++leaf) own += owned[static_cast<size_t>(leaf)] ? 1 : 0;
    if (own == count) found.push_back({first, count});
    if (own == count || own == 0) return;
    const int left = static_cast<int>(left_part(static_cast<size_t>(count)));
    self(self, first, left);
    self(self, first + left, count - left);
  };
  if (!owned.empty()) visit(visit, 0, static_cast<int>(owned.size()));
  return found;
}

// Folds values that arrive from left to right, those of leaves or of whole subtrees. It adds each node of the tree as
// soon as both of its parts are there, and so holds at most log2(n) + 1 values. add(left, right) returns the sum of two
// values. One thread.
template <typename Value>
class LeafFold {
 public:
  // `leaves`: those of the subtree whose value it is.
  template <typename Add>
  void push(Value value, Add&& add, size_t leaves = 1) {
    while (!parts_.empty() && parts_.back().leaves == leaves) {
      value = add(std::move(parts_.back().value), std::move(value));
      leaves *= 2;
      parts_.pop_back();
    }
    parts_.push_back({leaves, std::move(value)});
  }
  // The whole tree's value, after the last leaf. At least one value must have been pushed.
  template <typename Add>
  Value finish(Add&& add) {
    Value value = std::move(parts_.back().value);
    parts_.pop_back();
    for (; !parts_.empty(); parts_.pop_back()) value = add(std::move(parts_.back().value), std::move(value));
    return value;
  }
  bool empty() const { return parts_.empty(); }

 private:
  struct Part {
    size_t leaves;
    Value value;
  };
  c10::SmallVector<Part, 8> parts_;
};

}  // namespace lockstep::comm
