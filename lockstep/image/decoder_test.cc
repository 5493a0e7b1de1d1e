#include "lockstep/image/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <numeric>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/grey.h"
#include "lockstep/image/mask_value.h"
#include "lockstep/image/named.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

std::string refusal(std::span<const uint8_t> bytes, const DecodeOptions& options = {}) {
  Decoder decoder;
  try {
    decoder.open(bytes, "a/b.jpg", options);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

TEST(Decoder, RefusesWhatIsNoImage) {
  EXPECT_EQ(refusal({}), "a/b.jpg: the file is empty; remove or replace it");
  EXPECT_THAT(refusal(bytes_of("<html>not found</html>")), HasSubstr("a/b.jpg: it is no image"));
  EXPECT_THAT(refusal(bytes_of("\xff\xd8\xff")), HasSubstr("a/b.jpg: a damaged JPEG"));
}

TEST(Decoder, LimitsAreCheckedBeforeMemoryIsTaken) {
  auto bytes = encode_jpeg(picture({64, 48}));
  EXPECT_THAT(refusal(bytes, {.limits = {.pixels = 3071}}), HasSubstr("a/b.jpg: 64 x 48 pixels are more than 3071"));
  EXPECT_EQ(refusal(bytes, {.limits = {.pixels = 3072}}), "");
  // The frame's header tells a size of 60000 x 60000: in 4 KB nobody could store it.
  for (size_t i = 0; i + 9 < bytes.size(); ++i) {
    if (bytes[i] != 0xff || bytes[i + 1] != 0xc0) continue;
    bytes[i + 5] = bytes[i + 7] = 60000 >> 8;
    bytes[i + 6] = bytes[i + 8] = 60000 & 255;
    break;
  }
  EXPECT_THAT(refusal(bytes), HasSubstr("60000 x 60000 pixels are more than 178956970"));
  EXPECT_THAT(refusal(bytes, {.limits = {.pixels = int64_t{1} << 40}}), HasSubstr("more than a file of "));
}

TEST(Decoder, WhatAFileCanHoldIsCountedInItsOwnBits) {
  const Pixels mask = flat({12000, 9000}, 1, 0);
  const auto bits = encode_png(mask, {.bits = 1});  // 13 MB in 13 KB
  EXPECT_LT(bits.size(), 20000u);
  EXPECT_EQ(refusal(bits), "");
  EXPECT_EQ(refusal(bits, {.limits = {.expansion = 0}}), "");
  EXPECT_THAT(refusal(encode_png(mask), {.limits = {.expansion = 0}}), HasSubstr("more than a file of "));
  Decoder decoder;
  EXPECT_THROW(decoder.open_raw(bits, {.size = {2147483647, 2147483647}}, "raw"), DataError);
  EXPECT_THROW(decoder.open_raw(bits, {.size = {2147483647, 2147483647}}, "raw", {.limits = {.pixels = INT64_MAX}}),
               DataError);
}

TEST(Decoder, AnImageIsDecodedOnce) {
  const auto bytes = encode_jpeg(picture({64, 48}));
  Decoder decoder;
  Pixels pixels;
  EXPECT_THROW(decoder.decode({0, 0, 1, 1}, {1, 1}, pixels), BugError);
  decoder.open(bytes, "picture");
  EXPECT_THROW(decoder.decode({60, 0, 5, 5}, {1, 1}, pixels), BugError);
  decoder.decode({0, 0, 1, 1}, {1, 1}, pixels);
  EXPECT_THROW(decoder.decode({0, 0, 1, 1}, {1, 1}, pixels), BugError);
}

TEST(Decoder, EveryErrorNamesTheImage) {
  const std::string name = "a.png";
  EXPECT_THROW(named(name, []() -> int { throw std::bad_alloc(); }), IoError);
  const auto line_of = [&](const auto& error) -> std::string {
    try {
      named(name, [&] { throw error; });
    } catch (const Error& named) {
      return named.what();
    }
    return "";
  };
  EXPECT_EQ(line_of(std::bad_alloc()), "a.png: no memory to read it; use fewer --workers");
  EXPECT_EQ(line_of(IoError("no memory")), "a.png: no memory");
  EXPECT_EQ(line_of(DataError("a.png: damaged")), "a.png: damaged");
  Decoder decoder;
  std::vector<uint32_t> values;
  const auto bytes = encode_png(picture({4, 4}));
  decoder.open(bytes, name);
  decoder.decode_values(values);
  try {
    decoder.decode_values(values);
    FAIL();
  } catch (const BugError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.png: "));
  }
}

TEST(Decoder, ColoursBecomeGreyAsPillowRoundsThem) {
  const auto bytes = encode_jpeg(picture({64, 48}));
  const Pixels colours = decoded(bytes);
  Pixels grey;
  to_grey(colours, grey);
  EXPECT_EQ(difference(decoded(bytes, {.channels = 1}), grey), 0);
  const Rect rect{11, 7, 30, 20};
  EXPECT_EQ(difference(decoded(bytes, {.channels = 1}, rect), slice(grey, rect)), 0);
  const uint8_t red[] = {255, 0, 0}, white[] = {255, 255, 255};
  EXPECT_EQ(grey_of(red), 76);
  EXPECT_EQ(grey_of(white), 255);
}

// Upright pixels of the eight orientations of a stored image of 3 x 2 pixels, read by hand from the standard's words:
// row 0 is the visual top, right, …
TEST(Decoder, OrientationsAreThoseOfTheStandard) {
  std::vector<uint8_t> stored(6);
  std::iota(stored.begin(), stored.end(), 0);  // 0 1 2 / 3 4 5
  const std::vector<std::vector<uint8_t>> upright = {{0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0},
                                                     {3, 4, 5, 0, 1, 2}, {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2},
                                                     {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  Decoder decoder;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    decoder.open_raw(stored, {.size = {3, 2}, .channels = 1}, "raw", {.channels = 1});
    decoder.orient(orientation);
    const Size size = decoder.info().upright();
    EXPECT_EQ(size, orientation > 4 ? (Size{2, 3}) : (Size{3, 2}));
    std::vector<uint32_t> values;
    decoder.decode_values(values);
    EXPECT_EQ(std::vector<uint8_t>(values.begin(), values.end()), upright[static_cast<size_t>(orientation - 1)]);
  }
}

TEST(Decoder, ACropIsASliceInEachOrientation) {
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const int channels : {1, 3}) {
      const auto bytes = encode_jpeg(picture({70, 50}), {.orientation = orientation});
      const Pixels all = decoded(bytes, {.channels = channels});
      EXPECT_EQ(all.size(), orientation > 4 ? (Size{50, 70}) : (Size{70, 50}));
      for (int i = 0; i < 30; ++i) {
        const Rect rect = random_rect(random, all.size());
        ASSERT_EQ(difference(decoded(bytes, {.channels = channels}, rect), slice(all, rect)), 0) << orientation;
      }
    }
  }
}

TEST(Decoder, ExifOrientationsAreLeftAloneWhereAsked) {
  const auto bytes = encode_jpeg(picture({70, 50}), {.orientation = 6});
  Decoder decoder;
  EXPECT_EQ(decoder.open(bytes, "picture").orientation, 6);
  EXPECT_TRUE(decoder.info().exif_orientation);
  EXPECT_EQ(decoder.open(bytes, "picture", {.exif = false}).upright(), (Size{70, 50}));
  EXPECT_FALSE(decoder.open(encode_jpeg(picture({70, 50})), "picture").exif_orientation);
}

TEST(Decoder, RawPixelsInBothLayouts) {
  const Pixels original = picture({13, 9});
  std::vector<uint8_t> planes, pixels;
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 13 * 9; ++i) planes.push_back(original.at(i % 13, i / 13)[c]);
  }
  for (int i = 0; i < 13 * 9 * 3; ++i) pixels.push_back(original.at(i / 3 % 13, i / 39)[i % 3]);
  Decoder decoder;
  Pixels out;
  decoder.open_raw(planes, {.size = {13, 9}, .planes = true}, "raw");
  EXPECT_EQ(difference(slice(out, decoder.decode({2, 3, 8, 5}, {8, 5}, out)), slice(original, {2, 3, 8, 5})), 0);
  decoder.open_raw(pixels, {.size = {13, 9}}, "raw");
  EXPECT_EQ(difference(slice(out, decoder.decode({2, 3, 8, 5}, {8, 5}, out)), slice(original, {2, 3, 8, 5})), 0);
  pixels.pop_back();
  EXPECT_THROW(decoder.open_raw(pixels, {.size = {13, 9}}, "raw"), DataError);
}

TEST(Decoder, ValuesOfColoursAreTheirOwn) {
  std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6};
  Decoder decoder;
  decoder.open_raw(bytes, {.size = {2, 1}}, "raw");
  std::vector<uint32_t> values;
  decoder.decode_values(values);
  EXPECT_EQ(values, (std::vector<uint32_t>{mask_value(1, 2, 3), mask_value(4, 5, 6)}));
}

}  // namespace
}  // namespace lockstep::image
