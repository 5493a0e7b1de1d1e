// A random permutation of [0, n) that takes no memory: each number is computed from its position.
#pragma once

#include <cstdint>

#include "lockstep/base/philox.h"

namespace lockstep::data {

// A bijection of [0, n), keyed by (seed, purpose, epoch); the same in every process. Any thread may call.
//
// A Feistel network over the next even power of two, with Philox as its round function, permutes [0, 4^h). A result
// outside [0, n) is permuted again until it falls inside (cycle walking, fewer than 4 times on average).
class Permutation {
 public:
  // Throws BugError if n > 2^62.
  Permutation(uint64_t n, uint64_t seed, uint32_t epoch, Purpose purpose = Purpose::kShuffle);

  uint64_t size() const { return n_; }
  // The number at `position` < size().
  uint64_t operator()(uint64_t position) const;

 private:
  uint64_t feistel(uint64_t value) const;

  uint64_t n_;
  uint64_t seed_;
  uint32_t epoch_;
  Purpose purpose_;
  uint32_t half_bits_;
};

}  // namespace lockstep::data
