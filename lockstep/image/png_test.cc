#include "lockstep/image/png.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/error.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/mask_value.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

// The lowest bits of a picture.
Pixels few_bits(Size size, int bits) {
  Pixels pixels = picture(size, 1);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) pixels.at(x, y)[0] &= static_cast<uint8_t>((1 << bits) - 1);
  }
  return pixels;
}

TEST(Png, KeepsPixelsInEveryForm) {
  for (const int channels : {1, 3}) {
    const Pixels original = picture({37, 21}, channels);
    for (const int bits : {8, 16}) {
      for (const PngColour colour : {PngColour::kAsPixels, PngColour::kAlpha}) {
        for (const bool interlaced : {false, true}) {
          const auto bytes = encode_png(original, {.colour = colour, .bits = bits, .interlaced = interlaced});
          const Pixels pixels = decoded(bytes, {.channels = channels});
          EXPECT_EQ(difference(pixels, original), 0) << channels << " channels, " << bits << " bits";
          Decoder decoder;
          const ImageInfo& info = decoder.open(bytes, "picture");
          EXPECT_EQ(info.channels, channels);
          EXPECT_EQ(info.bits, bits);
          EXPECT_EQ(info.alpha, colour == PngColour::kAlpha);
        }
      }
    }
  }
}

TEST(Png, ACropIsASliceOfTheWhole) {
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  for (const int channels : {1, 3}) {
    for (const bool interlaced : {false, true}) {
      for (const PngColour colour : {PngColour::kAsPixels, PngColour::kAlpha}) {
        const Pixels original = picture({37, 21}, channels);
        const auto bytes = encode_png(original, {.colour = colour, .interlaced = interlaced});
        for (int i = 0; i < 50; ++i) {
          const Rect rect = random_rect(random, original.size());
          ASSERT_EQ(difference(decoded(bytes, {.channels = channels}, rect), slice(original, rect)), 0);
        }
      }
    }
  }
}

TEST(Png, PalettesAreColoursOrTheNumbersOfAMask) {
  for (const int bits : {1, 2, 4, 8}) {
    for (const bool interlaced : {false, true}) {
      const Pixels numbers = few_bits({19, 11}, bits);
      const auto bytes = encode_png(numbers, {.colour = PngColour::kPalette, .bits = bits, .interlaced = interlaced});
      const Pixels colours = decoded(bytes);
      const auto values = values_of(bytes);
      for (int y = 0; y < 11; ++y) {
        for (int x = 0; x < 19; ++x) {
          ASSERT_EQ(colours.at(x, y)[1], 255 - numbers.at(x, y)[0]);
          ASSERT_EQ(values[static_cast<size_t>(y * 19 + x)], numbers.at(x, y)[0]);
        }
      }
    }
  }
}

TEST(Png, GreyOfAFewBitsIsSpreadOverTheLevels) {
  for (const int bits : {1, 2, 4}) {
    const Pixels numbers = few_bits({19, 11}, bits);
    const auto bytes = encode_png(numbers, {.bits = bits});
    const int most = (1 << bits) - 1;
    EXPECT_EQ(decoded(bytes, {.channels = 1}).at(5, 3)[0], numbers.at(5, 3)[0] * 255 / most);
    EXPECT_EQ(values_of(bytes)[3 * 19 + 5], static_cast<uint32_t>(numbers.at(5, 3)[0] * 255 / most));
  }
}

TEST(Png, MasksKeepSixteenBitsAndColours) {
  const Pixels grey = picture({5, 4}, 1), colours = picture({5, 4}, 3);
  EXPECT_EQ(values_of(encode_png(grey, {.bits = 16}))[7], grey.at(2, 1)[0] * 257u);
  const uint8_t* const pixel = colours.at(2, 1);
  EXPECT_EQ(values_of(encode_png(colours))[7], mask_value(pixel[0], pixel[1], pixel[2]));
}

TEST(Png, ExifTurnsImages) {
  const Pixels original = picture({37, 21});
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto bytes = encode_png(original, {.orientation = orientation});
    Decoder decoder;
    EXPECT_EQ(decoder.open(bytes, "picture").orientation, orientation);
    EXPECT_TRUE(decoder.info().exif_orientation);
    EXPECT_EQ(decoder.open(bytes, "picture", {.exif = false}).orientation, 1);
    const Pixels all = decoded(bytes);
    EXPECT_EQ(difference(decoded(bytes, {}, {3, 2, 9, 11}), slice(all, {3, 2, 9, 11})), 0);
  }
  EXPECT_EQ(decoded(encode_png(original, {.orientation = 6})).at(20, 0)[0], original.at(0, 0)[0]);
}

TEST(Png, DamageIsRefused) {
  const auto sound = encode_png(picture({37, 21}));
  for (size_t length = 8; length < sound.size(); length += 61) {
    EXPECT_THAT(refusal({sound.begin(), sound.begin() + static_cast<ptrdiff_t>(length)}), HasSubstr("a damaged PNG ("))
        << length;
  }
  int refused = 0, tried = 0;
  for (size_t i = 8; i < sound.size(); i += 17) {
    auto bytes = sound;
    bytes[i] ^= 0x10;
    refused += refusal(bytes).empty() ? 0 : 1;
    ++tried;
  }
  EXPECT_EQ(refused, tried);
}

// Also in the last bytes of the pixels, and where only the first row is asked for.
TEST(Png, EveryBitBehindTheSignatureIsChecked) {
  const auto sound = encode_png(picture({16, 9}));
  for (size_t i = 8; i < sound.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto bytes = sound;
      bytes[i] ^= static_cast<uint8_t>(1 << bit);
      ASSERT_NE(refusal(bytes, {}, {0, 0, 16, 1}), "") << "byte " << i << ", bit " << bit;
    }
  }
}

TEST(Png, ADamagedTextIsPassedOver) {
  const Pixels original = picture({16, 9});
  auto bytes = encode_png(original);
  const std::vector<uint8_t> text = {0, 0, 0, 3, 't', 'E', 'X', 't', 'a', 0, 'b', 1, 2, 3, 4};
  bytes.insert(bytes.begin() + 33, text.begin(), text.end());  // behind the header
  EXPECT_EQ(difference(decoded(bytes), original), 0);
}

TEST(Png, AHugeHeaderIsRefusedBeforeMemoryIsTaken) {
  EXPECT_THAT(refusal(encode_png(picture({37, 21})), {.limits = {.pixels = 776}}),
              HasSubstr("37 x 21 pixels are more than 776"));
  const Pixels large = flat({3000, 3000}, 3, 0);
  EXPECT_THAT(refusal(encode_png(large), {.limits = {.expansion = 100}}),
              HasSubstr("3000 x 3000 pixels are more than a file of "));
  EXPECT_EQ(refusal(encode_png(large)), "");
}

}  // namespace
}  // namespace lockstep::image
