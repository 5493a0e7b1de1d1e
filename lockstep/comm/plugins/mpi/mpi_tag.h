// MPI's tags may have fewer bits than a Message's: as few as 15.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep::comm {

// The low bits, which tell apart what may be under way at once (exchange.cc), stay; the hash above them is folded upon
// itself until it fits. `bound` is MPI_TAG_UB, at least 32767.
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
