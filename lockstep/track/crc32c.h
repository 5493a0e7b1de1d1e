// CRC-32C (Castagnoli; RFC 3720), which guards the records of TensorBoard's event files.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::track {

uint32_t crc32c(std::string_view bytes);

// TFRecord's checksum: a sum over data that hold sums themselves would be weak without the turn.
inline uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t sum = crc32c(bytes);
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8;
}

}  // namespace lockstep::track
