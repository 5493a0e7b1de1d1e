// The tag of an MPI message. MPI's tags may have fewer bits than a Message's, as few as 15.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep::comm {

// Shortens a tag to at most `bound`, MPI_TAG_UB, which is at least 32767. Keeps the low bits, which tell apart messages
// that may be under way at once (exchange.cc). XORs the parts of the hash above them.
constexpr int mpi_tag(uint32_t tag, uint32_t bound) {
  constexpr int kLowBits = 9;
  if (tag <= bound) return static_cast<int>(tag);
  const int hash_bits = std::bit_width(uint64_t{bound} + 1) - 1 - kLowBits;
  const uint32_t mask = (1u << hash_bits) - 1;
  uint32_t hash = 0;
  for (uint32_t rest = tag >> kLowBits; rest != 0; rest >>= hash_bits) hash ^= rest & mask;
  return static_cast<int>(hash << kLowBits | (tag & ((1u << kLowBits) - 1)));
}

}  // namespace lockstep::comm
