// What Pillow made of small pictures: tests/fixtures/record_pillow.py.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/image/pixels.h"

namespace lockstep::image::testing_support {

inline nlohmann::json recorded() {
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/tests/fixtures/pillow.json");
  return nlohmann::json::parse(file);
}

// The picture that the recording script draws.
inline Pixels recorded_picture(Size size, int channels) {
  Pixels pixels;
  pixels.reshape(size, channels);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < channels; ++c)
        pixels.at(x, y)[c] = static_cast<uint8_t>(x * x * 7 + y * 31 + x * y * 3 + c * 85);
    }
  }
  return pixels;
}

// Pixels as they are listed there.
inline Pixels recorded_pixels(const nlohmann::json& values, Size size, int channels) {
  Pixels pixels;
  pixels.reshape(size, channels);
  size_t i = 0;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < channels; ++c) pixels.at(x, y)[c] = values.at(i++);
    }
  }
  return pixels;
}

}  // namespace lockstep::image::testing_support
