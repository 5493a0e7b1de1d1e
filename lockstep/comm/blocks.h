// The division of a list of tensors into blocks of kBlockElements elements, numbered over all tensors in order. The
// last block of each tensor may be shorter.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/comm/reduce.h"

namespace lockstep::comm {

// Blocks of a tensor of `elements` elements.
constexpr int64_t block_count(int64_t elements) { return (elements + kBlockElements - 1) / kBlockElements; }

// Blocks of all tensors together; elements[i] is the number of elements of tensor i.
inline int64_t block_count(std::span<const int64_t> elements) {
  int64_t blocks = 0;
  for (const int64_t n : elements) blocks += block_count(n);
  return blocks;
}

// The range [first, last) of blocks.
struct Slice {
  int64_t first, last;
};
// The slice of `rank` when `blocks` blocks are divided over `size` ranks.
constexpr Slice slice_of(int64_t blocks, int rank, int size) {
  return {blocks * rank / size, blocks * (rank + 1) / size};
}

// Calls visit(tensor, first element, elements, block) for each block of the slice, in order. `tensor` is the tensor's
// index, `first element` the block's beginning in that tensor, `block` its number over all tensors.
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
