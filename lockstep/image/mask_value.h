// What a pixel of a mask counts as.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::image {

// The value of a colour: its level if it is grey, however the file stores it, else 0xff000000 | R << 16 | G << 8 | B.
// Palettes of PNGs are no colours here: their numbers are the values, as labelling tools write them. Those of GIFs are,
// for writers number them anew in each file. The integers of npy files are values as they are.
constexpr uint32_t mask_value(uint8_t red, uint8_t green, uint8_t blue) {
  if (red == green && red == blue) return red;
  return 0xff000000 | uint32_t{red} << 16 | uint32_t{green} << 8 | blue;
}

// A value as messages write it: "255", or "#ff0000" for a colour.
std::string text_of_mask_value(uint32_t value);

}  // namespace lockstep::image
