// CRC-32, zip's: of bytes, and of a whole from those of its parts.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::checkpoint {

// The CRC-32 of the bytes, or of those with the sum `before` and these behind them. Faster than memory brings them,
// where the CPU has instructions for it.
uint32_t crc32(std::string_view bytes, uint32_t before = 0);

// The CRC-32 of bytes whose sum is `first` and of so many more whose sum is `second`.
uint32_t joined_crc(uint32_t first, uint32_t second, uint64_t second_bytes);

}  // namespace lockstep::checkpoint
