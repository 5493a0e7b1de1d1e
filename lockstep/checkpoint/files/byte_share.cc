#include "lockstep/checkpoint/files/byte_share.h"

#include <algorithm>

namespace lockstep::checkpoint {

std::vector<SharePart> share_of(std::span<const ByteRange> ranges, int ranks, int rank) {
  constexpr uint64_t kLine = 64;
  const auto lines_of = [](const ByteRange& range) { return (range.bytes + kLine - 1) / kLine; };
  uint64_t lines = 0;
  for (const ByteRange& range : ranges) lines += lines_of(range);
  const auto whole = static_cast<uint64_t>(ranks), own = static_cast<uint64_t>(rank);
  const auto cut = [&](uint64_t part) { return lines / whole * part + std::min(lines % whole, part); };
  const uint64_t begin = cut(own), end = cut(own + 1);

  std::vector<SharePart> parts;
  uint64_t at = 0;  // the lines of the ranges before
  for (size_t i = 0; i < ranges.size(); ++i) {
    const uint64_t count = lines_of(ranges[i]);
    const uint64_t first = std::clamp(begin, at, at + count) - at, last = std::clamp(end, at, at + count) - at;
    if (first < last) {
      parts.push_back(
          {.range = i, .first = first * kLine, .bytes = std::min(last * kLine, ranges[i].bytes) - first * kLine});
    }
    at += count;
  }
  return parts;
}

}  // namespace lockstep::checkpoint
