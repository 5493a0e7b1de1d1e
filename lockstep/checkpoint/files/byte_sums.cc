#include "lockstep/checkpoint/files/byte_sums.h"

#include <algorithm>
#include <utility>

#include "lockstep/checkpoint/files/crc32.h"

namespace lockstep::checkpoint {

ByteSums::ByteSums(std::vector<ByteSum> sums) : sums_(std::move(sums)) {
  std::sort(sums_.begin(), sums_.end(), [](const ByteSum& a, const ByteSum& b) { return a.offset < b.offset; });
}

std::optional<uint32_t> ByteSums::of(uint64_t offset, uint64_t bytes) const {
  auto sum = std::lower_bound(sums_.begin(), sums_.end(), offset,
                              [](const ByteSum& each, uint64_t at) { return each.offset < at; });
  uint32_t crc = 0;
  const uint64_t end = offset + bytes;
  for (uint64_t at = offset; at < end; at += sum->bytes, ++sum) {
    if (sum == sums_.end() || sum->offset != at || sum->bytes == 0 || sum->bytes > end - at) return std::nullopt;
    crc = joined_crc(crc, sum->crc, sum->bytes);
  }
  return crc;
}

}  // namespace lockstep::checkpoint
