// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// A number is a pure function of the seed and of its purpose. Ranks, workers and threads are never part of the key, so
// a run draws the same numbers however many of them there are.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// 128 random bits for a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The purpose of a stream of numbers. Equal indices under different purposes give unrelated numbers.
enum class Purpose : uint8_t {
  kInit = 1,
  kShuffle = 2,
  kAugment = 3,
  kSynthetic = 4,
  kKernels = 5,
  kSplit = 6,
  kCompression = 7,
  kMix = 8,
  kReplacement = 9,
  kWeighted = 10,
  kBlocks = 11,
  kSubstitute = 12
};

// The stream of numbers of (seed, purpose, epoch, index, slot), which any process can draw at any time. The index,
// below 2^56, is the number of a sample, or of a draw where samples repeat. Slots, below 4096, part the numbers of an
// index among those who draw for it: each has 2^22 numbers of its own. One thread.
class RandomStream {
 public:
  RandomStream(uint64_t seed, Purpose purpose, uint32_t epoch, uint64_t index, uint32_t slot = 0)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{slot << 20, epoch, static_cast<uint32_t>(index),
                 static_cast<uint32_t>(purpose) << 24 | (static_cast<uint32_t>(index >> 32) & 0xffffffu)} {}

  uint32_t bits();  // 32 random bits
  float uniform();  // [0, 1), 24 bits
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  float normal();              // mean 0, standard deviation 1 (Box-Muller)
  uint32_t below(uint32_t n);  // [0, n), exactly uniform (Lemire); n > 0

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

// The seed for libtorch's own generator before lane `lane` of step `step`. Dropout and the like draw from that
// generator alone.
uint32_t kernel_seed(uint64_t seed, uint64_t step, uint32_t lane);

}  // namespace lockstep
