// Pictures for tests: made on the spot, so that no test needs files.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/base/philox.h"
#include "lockstep/image/decoder.h"
#include "lockstep/image/pixels.h"

namespace lockstep::image::testing_support {

// Waves of colour with noise on them: each pixel and each channel differs from its neighbours.
inline Pixels picture(Size size, int channels = 3, uint64_t seed = 1) {
  Pixels pixels;
  pixels.reshape(size, channels);
  RandomStream random(seed, Purpose::kSynthetic, 0, 0);
  const float across = random.uniform(0.05f, 0.3f), down = random.uniform(0.05f, 0.3f);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const double wave = std::sin(static_cast<float>(x) * across + static_cast<float>(c)) *
                            std::cos(static_cast<float>(y) * down - 2 * static_cast<float>(c));
        pixels.at(x, y)[c] = static_cast<uint8_t>(110 + 90 * wave + random.below(50));
      }
    }
  }
  return pixels;
}

// An image of one colour.
inline Pixels flat(Size size, int channels, uint8_t value) {
  Pixels pixels;
  pixels.reshape(size, channels);
  for (int y = 0; y < size.height; ++y) {
    for (int i = 0; i < size.width * pixels.step(); ++i) pixels.row(y)[i] = value;
  }
  return pixels;
}

// The part `part` of an image.
inline Pixels slice(const Pixels& from, const Rect& part) {
  Pixels to;
  to.reshape(part.size(), from.channels());
  for (int y = 0; y < part.height; ++y) {
    for (int x = 0; x < part.width; ++x) {
      for (int c = 0; c < from.step(); ++c) to.at(x, y)[c] = from.at(part.x + x, part.y + y)[c];
    }
  }
  return to;
}

// A hash of all values.
inline uint64_t hash_of(const Pixels& pixels, uint64_t hash = kFnvSeed) {
  for (int y = 0; y < pixels.height(); ++y) {
    for (int x = 0; x < pixels.width(); ++x) {
      for (int c = 0; c < pixels.channels(); ++c) hash = fnv1a(hash, pixels.at(x, y)[c]);
    }
  }
  return hash;
}

// The greatest difference of two images; 256 if their shapes differ.
inline int difference(const Pixels& a, const Pixels& b) {
  if (a.size() != b.size() || a.channels() != b.channels()) return 256;
  int most = 0;
  for (int y = 0; y < a.height(); ++y) {
    for (int x = 0; x < a.width(); ++x) {
      for (int c = 0; c < a.channels(); ++c) most = std::max(most, std::abs(a.at(x, y)[c] - b.at(x, y)[c]));
    }
  }
  return most;
}

// Decodes a crop, or the whole image, to exactly its pixels.
inline Pixels decoded(const std::vector<uint8_t>& bytes, const DecodeOptions& options = {}, Rect crop = {}) {
  Decoder decoder;
  const Size size = decoder.open(bytes, "picture", options).upright();
  if (crop.width == 0) crop = {0, 0, size.width, size.height};
  Pixels pixels;
  const Rect place = decoder.decode(crop, crop.size(), pixels);
  return slice(pixels, place);
}

// The text of the DataError that decoding throws; empty if it throws none.
inline std::string refusal(const std::vector<uint8_t>& bytes, const DecodeOptions& options = {},
                           const Rect& crop = {}) {
  try {
    decoded(bytes, options, crop);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// A file's values as a mask.
inline std::vector<uint32_t> values_of(const std::vector<uint8_t>& bytes) {
  Decoder decoder;
  decoder.open(bytes, "mask");
  std::vector<uint32_t> values;
  decoder.decode_values(values);
  return values;
}

// A rectangle within `size`, of any size from one pixel on; every fourth one touches an edge.
inline Rect random_rect(RandomStream& random, Size size) {
  const auto below = [&](int n) { return static_cast<int>(random.below(static_cast<uint32_t>(n))); };
  Rect rect;
  const int most = below(4) == 0 ? 3 : 1 << 20;  // some are tiny
  rect.width = 1 + below(std::min(most, size.width));
  rect.height = 1 + below(std::min(most, size.height));
  rect.x = below(size.width - rect.width + 1);
  rect.y = below(size.height - rect.height + 1);
  switch (below(16)) {
    case 0:
      rect.x = 0;
      break;
    case 1:
      rect.x = size.width - rect.width;
      break;
    case 2:
      rect.y = 0;
      break;
    case 3:
      rect.y = size.height - rect.height;
      break;
    default:
      break;
  }
  return rect;
}

}  // namespace lockstep::image::testing_support
