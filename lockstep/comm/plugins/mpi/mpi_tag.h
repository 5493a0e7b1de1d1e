// The tag of an MPI message. MPI's tags may have fewer bits than a Message's, as few as 15.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep::comm {

// Shortens a tag (exchange.cc) to at most `bound`, MPI_TAG_UB, which is at least 32767. Keeps the highest bit, which
// tells users' messages from collectives, and the low bits, which tell apart messages of one user's tag that may be
// under way at once. XORs the parts between. Groups have communicators of their own.
constexpr int mpi_tag(uint32_t tag, uint32_t bound) {
  constexpr int kLowBits = 6, kTagBits = 31;
  if (bound >> kTagBits != 0 || bound == (1u << kTagBits) - 1) return static_cast<int>(tag);
  const int bits = std::bit_width(uint64_t{bound} + 1) - 1, fold_bits = bits - 1 - kLowBits;
  const uint32_t mask = (1u << fold_bits) - 1;
  uint32_t folded = 0;
  for (uint32_t rest = (tag & ((1u << (kTagBits - 1)) - 1)) >> kLowBits; rest != 0; rest >>= fold_bits) {
    folded ^= rest & mask;
  }
  return static_cast<int>((tag >> (kTagBits - 1)) << (bits - 1) | folded << kLowBits | (tag & ((1u << kLowBits) - 1)));
}

}  // namespace lockstep::comm
