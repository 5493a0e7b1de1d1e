// CRC-32s of parts of a file that several processes fill, from which those of its entries are put together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::checkpoint {

// `bytes` from `offset` of the file on.
struct ByteSum {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t crc = 0;
};

// The sums of a whole file, in any order at first. Pure.
class ByteSums {
 public:
  explicit ByteSums(std::vector<ByteSum> sums);

  // The CRC-32 of `bytes` from `offset` on, which some of the sums cover one after the other; nothing where they don't.
  std::optional<uint32_t> of(uint64_t offset, uint64_t bytes) const;

 private:
  std::vector<ByteSum> sums_;  // by offset
};

}  // namespace lockstep::checkpoint
