#include "lockstep/base/philox.h"

#include <cmath>
#include <numbers>

namespace lockstep {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

uint32_t RandomStream::bits() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<size_t>(used_++)];
}

float RandomStream::uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24f; }

float RandomStream::normal() {
  const double u = (static_cast<double>(bits()) + 1) * 0x1p-32;  // (0, 1]
  const double v = static_cast<double>(bits()) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
}

uint32_t RandomStream::below(uint32_t n) {
  uint64_t product = uint64_t{bits()} * n;
  if (static_cast<uint32_t>(product) < n) {
    const uint32_t biased = -n % n;
    while (static_cast<uint32_t>(product) < biased) product = uint64_t{bits()} * n;
  }
  return static_cast<uint32_t>(product >> 32);
}

uint32_t kernel_seed(uint64_t seed, uint64_t step, uint32_t lane) {
  return RandomStream(seed, Purpose::kKernels, lane, step).bits();
}

}  // namespace lockstep
