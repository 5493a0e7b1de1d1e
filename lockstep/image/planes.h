// Images whose channels lie one after the other, as networks take them.
#pragma once

#include <cstdint>

#include "lockstep/image/pixels.h"

namespace lockstep::image {

// [channels, height, width] as pixels; `level` makes a byte of a value.
template <typename Value, typename Level>
Pixels from_planes(const Value* planes, Size size, int channels, Level level) {
  Pixels pixels;
  pixels.reshape(size, channels);
  const int64_t plane = int64_t{size.width} * size.height;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const Value* const values = planes + int64_t{y} * size.width + x;
      uint8_t* const pixel = pixels.at(x, y);
      if (channels == 2) pixel[1] = pixel[2] = level(values[0]);
      for (int c = 0; c < channels; ++c) pixel[pixels.byte_of(c)] = level(values[c * plane]);
    }
  }
  return pixels;
}

}  // namespace lockstep::image
