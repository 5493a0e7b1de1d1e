// Grey levels of colours.
#pragma once

#include "lockstep/image/pixels.h"

namespace lockstep::image {

// The luma of a colour, as Pillow's convert("L") rounds it.
inline uint8_t grey_of(const uint8_t* pixel) {
  return static_cast<uint8_t>((19595u * pixel[0] + 38470u * pixel[1] + 7471u * pixel[2] + 32768u) >> 16);
}

// Writes the grey levels of an image of three channels.
void to_grey(const Pixels& colours, Pixels& grey);

}  // namespace lockstep::image
