// The colours in which pictures show classes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::image {

using Colour = std::array<uint8_t, 3>;

// The colour of a class from 1 on; class 0 is the ground, which is left as it is. After eight they begin again.
constexpr Colour class_colour(size_t number) {
  constexpr std::array kColours = {Colour{255, 64, 64}, Colour{64, 200, 255}, Colour{255, 210, 0},
                                   Colour{80, 230, 80}, Colour{220, 80, 255}, Colour{255, 140, 0},
                                   Colour{0, 120, 255}, Colour{255, 150, 200}};
  return kColours[(number - 1) % kColours.size()];
}

}  // namespace lockstep::image
