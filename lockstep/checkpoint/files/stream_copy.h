// A copy past the caches, for what this process won't read again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::checkpoint {

// Copies `bytes` to memory that doesn't overlap, by stores that neither read nor fill the caches. What other threads
// and processes see after a later release store includes them.
void stream_copy(char* to, const char* from, size_t bytes);

// The same. Returns the bytes' CRC-32 (crc32.h), which costs no second pass over memory.
uint32_t stream_copy_summed(char* to, const char* from, size_t bytes, uint32_t before = 0);

}  // namespace lockstep::checkpoint
