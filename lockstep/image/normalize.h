// Turns pixels into numbers, in any layout and type.
#pragma once

#include <array>
#include <cstdint>

#include "lockstep/image/pixels.h"

namespace lockstep::image {

enum class Type : uint8_t { kU8, kF32, kBf16, kF16 };

// Of values from 0 to 1. Alpha stays as it is.
struct Normalize {
  std::array<float, 3> mean{0, 0, 0}, std{1, 1, 1};
};

// Immutable; any thread.
class NormalizeTable {
 public:
  // A value v becomes (v / 255 - mean) / std in fp32, rounded to `type` once; kU8 stays as it is. Throws
  // ConfigError unless `std` is positive.
  NormalizeTable(const Normalize& normalize, Type type);

  // Writes [channels, height, width] to `to`, which has exactly that room: as C, H, W or, with channels_last, H, W, C.
  void store(const Pixels& from, void* to, bool channels_last) const;

  // Writes the numbers of all bytes, [channels, 256] of the type.
  void entries(int channels, void* to) const;

 private:
  Type type_;
  std::array<std::array<uint32_t, 256>, 4> bits_;  // of a pixel's bytes: an entry's bits, in its lowest bytes
};

// Writes class numbers as [height, width] of int64.
void store_classes(const Pixels& mask, int64_t* to);

}  // namespace lockstep::image
