#include "lockstep/image/mask_value.h"

#include <cstdio>

namespace lockstep::image {

std::string text_of_mask_value(uint32_t value) {
  const auto channel = [&](int shift) { return static_cast<uint8_t>(value >> shift); };
  const bool is_colour = value >> 24 == 0xff && mask_value(channel(16), channel(8), channel(0)) == value;
  if (!is_colour) return std::to_string(value);
  char text[8];
  std::snprintf(text, sizeof text, "#%06x", value & 0xffffffu);
  return text;
}

}  // namespace lockstep::image
