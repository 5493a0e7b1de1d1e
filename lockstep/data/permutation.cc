#include "lockstep/data/permutation.h"

#include <bit>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

// Four rounds suffice for large n (Luby and Rackoff). Halves of one or two bits need more to reach all orders about
// equally often.
constexpr uint32_t kRounds = 8;

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t seed, uint32_t epoch, Purpose purpose)
    : n_(n),
      seed_(seed),
      epoch_(epoch),
      purpose_(purpose),
      half_bits_(n < 2 ? 1 : (static_cast<uint32_t>(std::bit_width(n - 1)) + 1) / 2) {
  if (n > uint64_t{1} << 62) throw BugError("a permutation of ", n, " numbers; 2^62 are the most");
}

uint64_t Permutation::operator()(uint64_t position) const {
  if (position >= n_) throw BugError("position ", position, " of a permutation of ", n_, " numbers");
  do {
    position = feistel(position);
  } while (position >= n_);
  return position;
}

uint64_t Permutation::feistel(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto left = static_cast<uint32_t>(value >> half_bits_);
  auto right = static_cast<uint32_t>(value & mask);
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)};
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t mixed = philox4x32({right, epoch_, round, static_cast<uint32_t>(purpose_) << 24}, key)[0];
    left = std::exchange(right, (left ^ mixed) & static_cast<uint32_t>(mask));
  }
  return uint64_t{left} << half_bits_ | right;
}

}  // namespace lockstep::data
