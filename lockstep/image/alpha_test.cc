// Images with transparency, whose alpha is a channel like the others on its way from the file to the network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "lockstep/base/draw.h"
#include "lockstep/image/colour_operations.h"
#include "lockstep/image/decoder.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/erasing.h"
#include "lockstep/image/normalize.h"
#include "lockstep/image/orientation.h"
#include "lockstep/image/planes.h"
#include "lockstep/image/resize.h"
#include "lockstep/image/testing/encode_npy.h"
#include "lockstep/image/testing/pictures.h"
#include "lockstep/image/warp.h"

namespace lockstep::image {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

// Two channels or four.
Pixels picture_with_alpha(Size size, int channels) {
  const Pixels colours = picture(size, channels - 1), alpha = picture(size, 1, 7);
  Pixels pixels;
  pixels.reshape(size, channels);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < 3; ++c) pixels.at(x, y)[c] = colours.at(x, y)[channels == 2 ? 0 : c];
      pixels.at(x, y)[3] = *alpha.at(x, y);
    }
  }
  return pixels;
}

Pixels channel_of(const Pixels& pixels, int channel) {
  Pixels out;
  out.reshape(pixels.size(), 1);
  for (int y = 0; y < pixels.height(); ++y) {
    for (int x = 0; x < pixels.width(); ++x) *out.at(x, y) = pixels.at(x, y)[pixels.byte_of(channel)];
  }
  return out;
}

void expect_equal(const Pixels& a, const Pixels& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(a.channels(), b.channels());
  for (int c = 0; c < a.channels(); ++c) EXPECT_EQ(difference(channel_of(a, c), channel_of(b, c)), 0) << c;
}

TEST(Alpha, IsAPngsLastChannelInEveryForm) {
  for (const int channels : {2, 4}) {
    const Pixels original = picture_with_alpha({37, 21}, channels);
    for (const int bits : {8, 16}) {
      for (const bool interlaced : {false, true}) {
        const auto bytes = encode_png(original, {.bits = bits, .interlaced = interlaced});
        expect_equal(decoded(bytes, {.channels = channels}), original);
        const Rect part{5, 3, 20, 11};
        const Pixels crop = decoded(bytes, {.channels = channels}, part);
        for (int c = 0; c < channels; ++c) {
          EXPECT_EQ(difference(channel_of(crop, c), slice(channel_of(original, c), part)), 0);
        }
      }
    }
  }
}

TEST(Alpha, OfAGreyPngComesWithColoursToo) {
  const Pixels grey = picture_with_alpha({9, 8}, 2);
  const Pixels four = decoded(encode_png(grey), {.channels = 4});
  ASSERT_EQ(four.channels(), 4);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(difference(channel_of(four, c), channel_of(grey, 0)), 0);
  EXPECT_EQ(difference(channel_of(four, 3), channel_of(grey, 1)), 0);
}

TEST(Alpha, IsAnArraysLastChannel) {
  const Pixels two = decoded(encode_npy("'|u1'", "(1, 2, 2)", {10, 20, 30, 40}), {.channels = 2});
  EXPECT_EQ(two.channels(), 2);
  EXPECT_EQ(two.at(1, 0)[0], 30);
  EXPECT_EQ(two.at(1, 0)[two.byte_of(1)], 40);
  const Pixels four = decoded(encode_npy("'|u1'", "(1, 1, 4)", {1, 2, 3, 4}), {.channels = 4});
  for (int c = 0; c < 4; ++c) EXPECT_EQ(four.at(0, 0)[four.byte_of(c)], c + 1);
}

TEST(Alpha, IsNotMadeUp) {
  const auto opaque = encode_png(picture({8, 8}, 3)), photo = encode_jpeg(picture({8, 8}, 3));
  const auto transparent = encode_png(picture_with_alpha({8, 8}, 4));
  EXPECT_THAT(refusal(opaque, {.channels = 4}), HasSubstr("3 channels without alpha where 4 are asked for"));
  EXPECT_THAT(refusal(photo, {.channels = 4}), HasSubstr("3 channels without alpha where 4 are asked for"));
  EXPECT_THAT(refusal(transparent, {.channels = 2}), HasSubstr("3 channels and alpha where 2 are asked for"));
}

TEST(Alpha, IsTurnedWithItsImage) {
  for (const int channels : {2, 4}) {
    const Pixels original = picture_with_alpha({7, 5}, channels);
    for (int orientation = 2; orientation <= 8; ++orientation) {
      Pixels all, one;
      turn(original, {0, 0, 7, 5}, orientation, all);
      turn(channel_of(original, channels - 1), {0, 0, 7, 5}, orientation, one);
      EXPECT_EQ(difference(channel_of(all, channels - 1), one), 0) << orientation;
    }
  }
}

TEST(Alpha, IsResizedAndWarpedAsAnImageOfItsOwn) {
  const Pixels original = picture_with_alpha({61, 47}, 4);
  const Geometry all = whole(original.size()), smaller = resized(all, {23, 29}).value();
  for (const Filter filter : {Filter::kBilinear, Filter::kNearest}) {
    Resizer resizer;
    Pixels four, one;
    resizer.resize(original, all.source, smaller, filter, four);
    resizer.resize(channel_of(original, 3), all.source, smaller, filter, one);
    EXPECT_LE(difference(channel_of(four, 3), one), 1);
  }
  const AffineMap map{.x_x = 0.9, .x_y = 0.1, .x_0 = 1, .y_x = -0.1, .y_y = 0.9, .y_0 = 2};
  Pixels four, one;
  warp(original, map, Filter::kBilinear, 0, four);
  warp(channel_of(original, 3), map, Filter::kBilinear, 0, one);
  EXPECT_LE(difference(channel_of(four, 3), one), 1);
}

TEST(Alpha, IsNoColour) {
  Pixels copy;
  const std::map<std::string, std::function<void(Pixels&)>> operations = {
      {"brightness", [](Pixels& pixels) { change_brightness(pixels, 0.6); }},
      {"contrast", [](Pixels& pixels) { change_contrast(pixels, 1.7); }},
      {"saturation", [](Pixels& pixels) { change_saturation(pixels, 0.3); }},
      {"sharpness", [&](Pixels& pixels) { change_sharpness(pixels, 1.7, copy); }},
      {"hue", [](Pixels& pixels) { turn_hue(pixels, 0.3); }},
      {"posterize", [](Pixels& pixels) { posterize(pixels, 2); }},
      {"solarize", [](Pixels& pixels) { solarize(pixels, 100); }},
      {"autocontrast", autocontrast},
      {"equalize", equalize}};
  for (const auto& [name, operation] : operations) {
    for (const int channels : {2, 4}) {
      Pixels pixels = picture_with_alpha({21, 17}, channels), plain = picture({21, 17}, channels - 1);
      const Pixels alpha = channel_of(pixels, channels - 1);
      operation(pixels);
      EXPECT_EQ(difference(channel_of(pixels, channels - 1), alpha), 0) << name;
      if (channels == 2) continue;
      operation(plain);  // the colours are those without alpha
      for (int c = 0; c < 3; ++c) EXPECT_EQ(difference(channel_of(pixels, c), channel_of(plain, c)), 0) << name;
    }
  }
}

TEST(Alpha, IsErasedWithTheColours) {
  Sample sample{flat({60, 50}, 4, 1), flat({60, 50}, 1, 1)};
  Scratch scratch;
  random_erasing({.share = 1, .value = {9, 8, 7}})->apply(sample, Draw{1, 0, 2}.stream(96), scratch);
  int erased = 0;
  for (int i = 0; i < 60 * 50; ++i) {
    const uint8_t* const pixel = sample.image.at(i % 60, i / 60);
    erased += pixel[0] == 9;
    EXPECT_EQ(pixel[3], pixel[0] == 9 ? 0 : 1);
  }
  EXPECT_GT(erased, 0);
}

TEST(Alpha, IsStoredLastAndNotNormalised) {
  const Normalize normalize{{0.5f, 0.4f, 0.3f}, {0.2f, 0.3f, 0.4f}};
  const NormalizeTable table(normalize, Type::kF32);
  for (const int channels : {2, 4}) {
    const Pixels pixels = picture_with_alpha({5, 3}, channels);
    const auto count = static_cast<size_t>(channels);
    std::vector<float> planes(15 * count), last(15 * count), entries(256 * count);
    table.store(pixels, planes.data(), /*channels_last=*/false);
    table.store(pixels, last.data(), /*channels_last=*/true);
    table.entries(channels, entries.data());
    for (size_t c = 0; c < count; ++c) {
      const bool is_alpha = c == count - 1;
      for (int i = 0; i < 15; ++i) {
        const uint8_t level = pixels.at(i % 5, i / 5)[pixels.byte_of(static_cast<int>(c))];
        const float share = static_cast<float>(level) / 255;
        const float expected = is_alpha ? share : (share - normalize.mean[c]) / normalize.std[c];
        EXPECT_EQ(planes[c * 15 + static_cast<size_t>(i)], expected);
        EXPECT_EQ(last[static_cast<size_t>(i) * count + c], expected);
        EXPECT_EQ(entries[c * 256 + level], expected);
      }
    }
  }
}

TEST(Alpha, ComesBackFromPlanes) {
  for (const int channels : {2, 4}) {
    const Pixels pixels = picture_with_alpha({6, 4}, channels);
    std::vector<uint8_t> planes(static_cast<size_t>(24 * channels));
    NormalizeTable({}, Type::kU8).store(pixels, planes.data(), false);
    expect_equal(from_planes(planes.data(), {6, 4}, channels, [](uint8_t level) { return level; }), pixels);
  }
}

}  // namespace
}  // namespace lockstep::image
