#include "lockstep/image/gif.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/error.h"
#include "lockstep/image/mask_value.h"
#include "lockstep/image/testing/encode_gif.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

TEST(Gif, ReadsTheFirstFrame) {
  const Pixels numbers = picture({29, 23}, 1);
  for (const bool interlaced : {false, true}) {
    for (const int frames : {1, 3}) {
      const auto bytes = encode_gif(numbers, {.interlaced = interlaced, .frames = frames});
      const Pixels pixels = decoded(bytes);
      const auto values = values_of(bytes);
      ASSERT_EQ(pixels.size(), numbers.size());
      for (int y = 0; y < 23; ++y) {
        for (int x = 0; x < 29; ++x) {
          ASSERT_EQ(pixels.at(x, y)[0], numbers.at(x, y)[0]);
          ASSERT_EQ(pixels.at(x, y)[1], 255 - numbers.at(x, y)[0]);
          ASSERT_EQ(pixels.at(x, y)[2], 7);
          const uint8_t number = numbers.at(x, y)[0];
          ASSERT_EQ(values[static_cast<size_t>(y * 29 + x)], mask_value(number, static_cast<uint8_t>(255 - number), 7));
        }
      }
    }
  }
}

TEST(Gif, ACropIsASliceOfTheWhole) {
  const auto bytes = encode_gif(picture({29, 23}, 1));
  const Pixels all = decoded(bytes);
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  for (int i = 0; i < 50; ++i) {
    const Rect rect = random_rect(random, all.size());
    ASSERT_EQ(difference(decoded(bytes, {}, rect), slice(all, rect)), 0);
    ASSERT_EQ(decoded(bytes, {.channels = 1}, rect).channels(), 1);
  }
}

TEST(Gif, ASmallFrameLiesOnColourZero) {
  const Pixels numbers = flat({4, 3}, 1, 9);
  const auto values = values_of(encode_gif(numbers, {.screen = {8, 6}, .left = 2, .top = 1}));
  for (int i = 0; i < 48; ++i) {
    const int x = i % 8 - 2, y = i / 8 - 1;
    const uint8_t number = x >= 0 && x < 4 && y >= 0 && y < 3 ? 9 : 0;
    EXPECT_EQ(values[static_cast<size_t>(i)], mask_value(number, static_cast<uint8_t>(255 - number), 7)) << i;
  }
}

TEST(Gif, GreyMasksHaveTheirLevelsHoweverTheyAreNumbered) {
  Pixels numbers = flat({2, 1}, 1, 0);
  numbers.at(1, 0)[0] = 1;
  const auto values = [&](const std::vector<int>& greys) {
    return values_of(encode_gif(numbers, {.bits = 2, .greys = greys}));
  };
  EXPECT_EQ(values({0, 255}), (std::vector<uint32_t>{0, 255}));
  EXPECT_EQ(values({255, 0}), (std::vector<uint32_t>{255, 0}));
  EXPECT_EQ(values({128, 7}), (std::vector<uint32_t>{128, 7}));
}

// As of two masks that were drawn with the same colours, in another order.
TEST(Gif, MasksHaveTheirColoursHoweverTheyAreNumbered) {
  Pixels numbers = flat({3, 1}, 1, 0);
  for (int x = 0; x < 3; ++x) numbers.at(x, 0)[0] = static_cast<uint8_t>(x);
  const auto values = [&](const std::vector<uint32_t>& colours) {
    return values_of(encode_gif(numbers, {.bits = 2, .colours = colours}));
  };
  EXPECT_EQ(values({0, 0xff0000, 0xffffff}), (std::vector<uint32_t>{0, mask_value(255, 0, 0), 255}));
  EXPECT_EQ(values({0xff0000, 0xffffff, 0}), (std::vector<uint32_t>{mask_value(255, 0, 0), 255, 0}));
}

TEST(Gif, DamageIsRefused) {
  const auto sound = encode_gif(picture({29, 23}, 1));
  for (size_t length = 6; length + 1 < sound.size(); length += 29) {
    EXPECT_THAT(refusal({sound.begin(), sound.begin() + static_cast<ptrdiff_t>(length)}), HasSubstr("a damaged GIF ("))
        << length;
  }
  EXPECT_THAT(refusal(encode_gif(flat({4, 3}, 1, 9), {.screen = {8, 6}, .left = 5})),
              HasSubstr("not within the image"));
  auto colourless = sound;
  colourless[10] &= 0x7f;  // says that no colours follow the screen's size
  colourless.erase(colourless.begin() + 13, colourless.begin() + 13 + 768);
  EXPECT_THAT(refusal(colourless), HasSubstr("no colours"));
  auto short_of_colours = sound;
  short_of_colours[10] ^= 1;  // 128 of them
  short_of_colours.erase(short_of_colours.begin() + 13 + 384, short_of_colours.begin() + 13 + 768);
  EXPECT_THAT(refusal(short_of_colours), HasSubstr("none of its colours"));
  EXPECT_THAT(refusal(sound, {.limits = {.pixels = 100}}), HasSubstr("29 x 23 pixels are more than 100"));
}

}  // namespace
}  // namespace lockstep::image
