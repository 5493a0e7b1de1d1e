// What thousands of damaged files do: each is decoded, or refused by name.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/testing/encode_gif.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

struct Tally {
  int decoded = 0, refused = 0;
};

// Reads a file in each of the ways that there are. Sizes that a damaged header tells are bounded.
void read_in_every_way(Decoder& decoder, const std::vector<uint8_t>& bytes, const std::string& what, Tally& tally) {
  constexpr Limits kLimits{.pixels = 1 << 21, .scanned = 1 << 24};
  const std::string name = "folder/a.img";
  for (int way = 0; way < 4; ++way) {
    try {
      const ImageInfo& info = decoder.open(bytes, name, {.channels = way == 1 ? 1 : 3, .limits = kLimits});
      const Size size = info.upright();
      if (way == 3) {
        std::vector<uint32_t> values;
        decoder.decode_values(values);
        ASSERT_EQ(values.size(), static_cast<size_t>(size.width) * static_cast<size_t>(size.height)) << what;
      } else {
        const Rect rect{size.width / 3, size.height / 3, size.width - size.width / 3, (size.height + 1) / 2};
        const Rect crop = way == 2 ? rect : Rect{0, 0, size.width, size.height};
        Pixels pixels;
        const Rect place = decoder.decode(crop, crop.size(), pixels);
        ASSERT_EQ(place.size(), crop.size()) << what;
        ASSERT_LE(place.x + place.width, pixels.width()) << what;
        ASSERT_LE(place.y + place.height, pixels.height()) << what;
        hash_of(pixels);  // reads them all
      }
      ++tally.decoded;
    } catch (const DataError& error) {
      ASSERT_TRUE(std::string(error.what()).starts_with(name + ": ")) << what << ": " << error.what();
      ++tally.refused;
    }
  }
}

// 64 cuts, and 500 files in which a few bits are turned.
void damage(const char* kind, const std::vector<uint8_t>& sound) {
  SCOPED_TRACE(kind);
  Decoder decoder;
  Tally whole, cut, turned;
  read_in_every_way(decoder, sound, "whole", whole);
  EXPECT_EQ(whole.decoded, 4);
  for (size_t i = 0; i < 64; ++i) {
    const size_t length = sound.size() * i / 64;
    read_in_every_way(decoder, {sound.begin(), sound.begin() + static_cast<ptrdiff_t>(length)}, cat("cut at ", length),
                      cut);
  }
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  for (int i = 0; i < 500; ++i) {
    auto bytes = sound;
    std::string what = "turned:";
    for (uint32_t n = 1 + random.below(3); n > 0; --n) {
      const uint32_t bit = random.below(static_cast<uint32_t>(8 * bytes.size()));
      bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      what += cat(" ", bit);
    }
    read_in_every_way(decoder, bytes, what, turned);
  }
  EXPECT_EQ(cut.refused + cut.decoded, 4 * 64);
  EXPECT_GT(cut.refused, cut.decoded);  // a GIF's crop may lie before the cut
  EXPECT_EQ(turned.refused + turned.decoded, 4 * 500);
  EXPECT_GT(turned.refused, 0);
  read_in_every_way(decoder, sound, "whole again", whole);
  EXPECT_EQ(whole.decoded, 8);
}

TEST(BadFiles, JpegsAreDecodedOrRefusedByName) {
  const Pixels colours = picture({50, 37});
  damage("baseline", encode_jpeg(colours, {.orientation = 6}));
  damage("progressive", encode_jpeg(colours, {.progressive = true}));
  damage("restarts", encode_jpeg(colours, {.restart_rows = 1}));
  damage("separate", encode_jpeg(colours, {.subsampling = Subsampling::k422, .interleaved = false}));
  damage("cmyk", encode_jpeg(colours, {.cmyk = true}));
  damage("grey", encode_jpeg(picture({50, 37}, 1)));
}

TEST(BadFiles, PngsAreDecodedOrRefusedByName) {
  const Pixels colours = picture({33, 21}), grey = picture({33, 21}, 1);
  damage("colours", encode_png(colours, {.orientation = 5}));
  damage("interlaced", encode_png(colours, {.colour = PngColour::kAlpha, .interlaced = true}));
  damage("wide", encode_png(grey, {.bits = 16}));
  damage("palette", encode_png(grey, {.colour = PngColour::kPalette, .bits = 4, .interlaced = true}));
}

TEST(BadFiles, GifsAreDecodedOrRefusedByName) {
  damage("plain", encode_gif(picture({33, 21}, 1)));
  damage("interlaced", encode_gif(picture({33, 21}, 1), {.screen = {40, 30}, .left = 3, .top = 2, .interlaced = true}));
}

}  // namespace
}  // namespace lockstep::image
