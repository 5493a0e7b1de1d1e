#include "lockstep/comm/network/tree_join.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "lockstep/comm/blocks.h"
#include "lockstep/comm/tensor_bytes.h"

namespace lockstep::comm {
namespace {

// A subtree's values, which a member has received or holds itself.
struct Held {
  Subtree subtree;
  const void* data;
};

// Writes the reduction of the subtrees' values, which together have all leaves of a tree, to out[0, count). `out` may
// be the memory of one of the subtrees.
void combine(std::vector<Held> values, at::ScalarType dtype, ReduceOp op, void* out, int64_t count) {
  std::sort(values.begin(), values.end(),
            [](const Held& a, const Held& b) { return a.subtree.first < b.subtree.first; });
  const auto element_size = static_cast<int64_t>(c10::elementSize(dtype));
  std::vector<Source> sources(values.size());
  FoldScratch scratch;
  for (int64_t first = 0; first < count; first += kBlockElements) {
    const int64_t offset = first * element_size;
    for (size_t k = 0; k < values.size(); ++k) {
      sources[k] = {
          static_cast<const std::byte*>(values[k].data) + offset, {}, static_cast<size_t>(values[k].subtree.count)};
    }
    reduce_block(dtype, op, sources, static_cast<std::byte*>(out) + offset, std::min(kBlockElements, count - first),
                 scratch);
  }
}

}  // namespace

JoinPlan leaves_plan(int size) {
  JoinPlan plan{.leaves = size, .holdings = {}};
  for (int k = 0; k < size; ++k) plan.holdings.push_back({{k, 1}});
  return plan;
}

void tree_join(Exchange& exchange, const JoinPlan& plan, ReduceOp op, std::vector<at::Tensor>& partials) {
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
  std::vector<Held> values;
  for (int k = 0; k < size; ++k) {
    const auto& held = plan.holdings[static_cast<size_t>(k)];
    for (size_t i = 0; i < held.size(); ++i) {
      if (k == self) {
        values.push_back({held[i], data_of(partials[i]) + own.first * element_size});
        continue;
      }
      received.push_back(at::empty({own_elements}, partials[0].options()));
      receives.push_back(piece(k, received.back(), {0, own_elements}));
      values.push_back({held[i], received.back().data_ptr()});
    }
    if (k == self) continue;
    for (const auto& partial : partials) sends.push_back(piece(k, partial, slice(k)));
  }
  exchange(sends, receives);
  combine(std::move(values), dtype, op, data_of(partials[0]) + own.first * element_size, own_elements);
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
  std::vector<Held> values;
  std::vector<Piece> sends, receives;
  std::vector<at::Tensor> received;
  for (int k = 0; k < exchange.size(); ++k) {
    const std::byte* row = data_of(rows) + static_cast<size_t>(k) * row_bytes;
    if (k == exchange.self()) {
      values.push_back({{k, 1}, row});
      continue;
    }
    received.push_back(at::empty_like(out));
    sends.push_back({k, row, row_bytes});
    receives.push_back({k, received.back().data_ptr(), row_bytes});
    values.push_back({{k, 1}, received.back().data_ptr()});
  }
  exchange(sends, receives);
  combine(std::move(values), out.scalar_type(), op, out.data_ptr(), out.numel());
}

}  // namespace lockstep::comm
