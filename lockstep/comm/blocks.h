// A list of tensors seen as one row of blocks of kBlockElements, the last block of each tensor being the shorter one.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/comm/reduce.h"

namespace lockstep::comm {

constexpr int64_t block_count(int64_t elements) { return (elements + kBlockElements - 1) / kBlockElements; }

// Blocks of all tensors together, given their numbers of elements.
inline int64_t block_count(std::span<const int64_t> elements) {
  int64_t blocks = 0;
  for (const int64_t n : elements) blocks += block_count(n);
  return blocks;
}

// The blocks of `rank` when `blocks` are divided over `size` ranks: [first, last).
struct Slice {
  int64_t first, last;
};
constexpr Slice slice_of(int64_t blocks, int rank, int size) {
  return {blocks * rank / size, blocks * (rank + 1) / size};
}

// Calls visit(tensor, first element, elements, block) for each block of the slice, in order.
template <typename Visit>
void for_each_block(std::span<const int64_t> elements, Slice slice, Visit&& visit) {
  int64_t block = 0;
  for (size_t tensor = 0; tensor < elements.size() && block < slice.last; ++tensor) {
    const int64_t blocks = block_count(elements[tensor]);
    const int64_t from = slice.first > block ? slice.first - block : 0;
    const int64_t to = slice.last - block < blocks ? slice.last - block : blocks;
    for (int64_t i = from; i < to; ++i) {
      const int64_t first = i * kBlockElements;
      const int64_t left = elements[tensor] - first;
      visit(tensor, first, left < kBlockElements ? left : kBlockElements, block + i);
    }
    block += blocks;
  }
}

}  // namespace lockstep::comm
