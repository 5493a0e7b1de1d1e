// Who copies which bytes of what all ranks have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::checkpoint {

struct ByteRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A part of one of several ranges: `bytes` from byte `first` of it on.
struct SharePart {
  size_t range = 0;
  uint64_t first = 0, bytes = 0;
};

// Returns rank `rank`'s share: the ranges, one after the other, are cut into `ranks` contiguous parts of nearly equal
// length. Every cut lies at a multiple of 64 bytes of its range. A pure function.
std::vector<SharePart> share_of(std::span<const ByteRange> ranges, int ranks, int rank);

}  // namespace lockstep::checkpoint
