#include "lockstep/comm/network/tree_join.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "lockstep/comm/blocks.h"
#include "lockstep/comm/tensor_bytes.h"

namespace lockstep::comm {
namespace {

// Combines the values of subtrees, which a member has received or holds itself.
class Combiner {
 public:
  Combiner(int leaves, at::ScalarType dtype, ReduceOp op)
      : leaves_(leaves), dtype_(dtype), op_(op), element_size_(static_cast<int64_t>(c10::elementSize(dtype))) {}

  void add(const Subtree& subtree, const void* data) { values_[subtree.first] = {subtree.count, data}; }

  // Writes the tree's values to out[0, count). `out` may be the memory of one of the subtrees.
  void combine(void* out, int64_t count) {
    for (int64_t first = 0; first < count; first += kBlockElements) {
      const int64_t n = std::min(kBlockElements, count - first);
      auto* to = static_cast<std::byte*>(out) + first * element_size_;
      const void* result = node(0, leaves_, first * element_size_, n, 0, to);
      if (result != to) std::memcpy(to, result, static_cast<size_t>(n * element_size_));
    }
  }

 private:
  struct Value {
    int count;
    const void* data;
  };

  // The address of a node's values: the memory of a subtree, or `out` if they had to be combined.
  const void* node(int first, int count, int64_t offset, int64_t n, size_t depth, void* out) {
    const auto held = values_.find(first);
    if (held != values_.end() && held->second.count == count) {
      return static_cast<const std::byte*>(held->second.data) + offset;
    }
    const int left = static_cast<int>(left_part(static_cast<size_t>(count)));
    while (scratch_.size() <= 2 * depth + 1) {
      scratch_.emplace_back(static_cast<size_t>(kBlockElements * element_size_));
    }
    const void* a = node(first, left, offset, n, depth + 1, scratch_[2 * depth].data());
    const void* b = node(first + left, count - left, offset, n, depth + 1, scratch_[2 * depth + 1].data());
    combine_block(dtype_, op_, a, b, out, n);
    return out;
  }

  int leaves_;
  at::ScalarType dtype_;
  ReduceOp op_;
  int64_t element_size_;
  std::map<int, Value> values_;                 // by first leaf; the subtrees don't overlap
  std::deque<std::vector<std::byte>> scratch_;  // two for each level; a deque keeps pointers valid while it grows
};

}  // namespace

JoinPlan leaves_plan(int size) {
  JoinPlan plan{.leaves = size, .holdings = {}};
  for (int k = 0; k < size; ++k) plan.holdings.push_back({{k, 1}});
  return plan;
}

void tree_join(Exchange& exchange, const JoinPlan& plan, ReduceOp op, bool mean, std::vector<at::Tensor>& partials) {
  const int size = exchange.size(), self = exchange.self();
  const at::ScalarType dtype = partials[0].scalar_type();
  const auto element_size = static_cast<int64_t>(partials[0].element_size());
  const auto slice = [&](int k) {
    // Slices begin on cache lines.
    constexpr int64_t kUnit = 64;
    const int64_t units = (partials[0].numel() + kUnit - 1) / kUnit;
    const Slice s = slice_of(units, k, size);
    return Slice{std::min(partials[0].numel(), s.first * kUnit), std::min(partials[0].numel(), s.last * kUnit)};
  };
  const auto piece = [&](int member, const at::Tensor& tensor, const Slice& s) {
    return Piece{member, data_of(tensor) + s.first * element_size,
                 static_cast<size_t>((s.last - s.first) * element_size)};
  };
  const Slice own = slice(self);
  const int64_t own_elements = own.last - own.first;
  std::vector<Piece> sends, receives;
  std::vector<at::Tensor> received;
  Combiner combiner(plan.leaves, dtype, op);
  for (int k = 0; k < size; ++k) {
    const auto& held = plan.holdings[static_cast<size_t>(k)];
    for (size_t i = 0; i < held.size(); ++i) {
      if (k == self) {
        combiner.add(held[i], data_of(partials[i]) + own.first * element_size);
        continue;
      }
      received.push_back(at::empty({own_elements}, partials[0].options()));
      receives.push_back(piece(k, received.back(), {0, own_elements}));
      combiner.add(held[i], received.back().data_ptr());
    }
    if (k == self) continue;
    for (const auto& partial : partials) sends.push_back(piece(k, partial, slice(k)));
  }
  exchange(sends, receives);
  std::byte* result = data_of(partials[0]) + own.first * element_size;
  combiner.combine(result, own_elements);
  if (mean) divide_block(dtype, result, plan.leaves, own_elements);
  sends.clear();
  receives.clear();
  for (int k = 0; k < size; ++k) {
    if (k == self) continue;
    sends.push_back(piece(k, partials[0], own));
    receives.push_back(piece(k, partials[0], slice(k)));
  }
  exchange(sends, receives);
}

void tree_reduce_scatter(Exchange& exchange, ReduceOp op, const at::Tensor& rows, const at::Tensor& out) {
  const auto row_bytes = static_cast<size_t>(out.nbytes());
  Combiner combiner(exchange.size(), out.scalar_type(), op);
  std::vector<Piece> sends, receives;
  std::vector<at::Tensor> received;
  for (int k = 0; k < exchange.size(); ++k) {
    const std::byte* row = data_of(rows) + static_cast<size_t>(k) * row_bytes;
    if (k == exchange.self()) {
      combiner.add({k, 1}, row);
      continue;
    }
    received.push_back(at::empty_like(out));
    sends.push_back({k, row, row_bytes});
    receives.push_back({k, received.back().data_ptr(), row_bytes});
    combiner.add({k, 1}, received.back().data_ptr());
  }
  exchange(sends, receives);
  combiner.combine(out.data_ptr(), out.numel());
  if (op == ReduceOp::kMean) divide_block(out.scalar_type(), out.data_ptr(), exchange.size(), out.numel());
}

}  // namespace lockstep::comm
