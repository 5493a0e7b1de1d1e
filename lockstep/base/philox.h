// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// A number is a pure function of what it is for, so a run draws the same ones whatever the number of ranks, workers
// and threads: none of those is ever part of a key.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// 128 random bits for a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a stream of numbers is for: equal indices under different purposes give unrelated numbers.
enum class Purpose : uint8_t {
  kInit = 1,
  kShuffle = 2,
  kAugment = 3,
  kSynthetic = 4,
  kKernels = 5,
  kSplit = 6,
  kCompression = 7
};

// The stream of (seed, purpose, epoch, index): an endless row of numbers that any process can draw at any time.
// index < 2^56 (a sample's number, or a draw's where samples repeat).
class RandomStream {
 public:
  RandomStream(uint64_t seed, Purpose purpose, uint32_t epoch, uint64_t index)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{0, epoch, static_cast<uint32_t>(index),
                 static_cast<uint32_t>(purpose) << 24 | (static_cast<uint32_t>(index >> 32) & 0xffffffu)} {}

  uint32_t bits();  // 32 random bits
  float uniform();  // [0, 1), 24 bits
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  float normal();              // mean 0, deviation 1 (Box-Muller)
  uint32_t below(uint32_t n);  // [0, n), exactly uniform (Lemire); n > 0

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

// The 32-bit seed that libtorch's own generator gets before lane `lane` of step `step` (dropout and the like draw
// from no other generator).
uint32_t kernel_seed(uint64_t seed, uint64_t step, uint32_t lane);

}  // namespace lockstep
