#include "lockstep/image/testing/odd_jpeg.h"

#include <gtest/gtest.h>

#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

const OddJpeg kKinds[] = {
    {"grey_of_2_by_2", JCS_GRAYSCALE, {{{2, 2}}}},
    {"three_across", JCS_YCbCr, {{{3, 1}, {1, 1}, {1, 1}}}},
    {"blue_unlike_red", JCS_YCbCr, {{{2, 2}, {1, 1}, {2, 1}}}},
    {"finer_colours_than_brightness", JCS_YCbCr, {{{1, 1}, {2, 2}, {2, 2}}}},
    {"rgb", JCS_RGB},
    {"ycck", JCS_YCCK},
    {"arithmetic", JCS_YCbCr, {}, true},
};

class OddJpegCrop : public ::testing::TestWithParam<OddJpeg> {};

TEST_P(OddJpegCrop, HundredsOfRectanglesAreSlicesOfTheWhole) {
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  const int channels = GetParam().colours == JCS_GRAYSCALE ? 1 : 3;
  for (const Size size : {Size{131, 93}, {64, 48}, {17, 200}, {203, 9}}) {
    Pixels original = picture(size, channels);
    for (int i = 0; channels == 3 && i < size.width * size.height; ++i) {
      original.at(i % size.width, i / size.width)[3] = static_cast<uint8_t>(255 - i % 50);
    }
    const auto bytes = encode_odd_jpeg(original, GetParam());
    const Pixels all = decoded(bytes, {.channels = channels});
    ASSERT_EQ(all.size(), size);
    for (int i = 0; i < 60; ++i) {
      const Rect rect = random_rect(random, size);
      ASSERT_EQ(difference(decoded(bytes, {.channels = channels}, rect), slice(all, rect)), 0)
          << size.width << " x " << size.height << ": " << rect.x << ", " << rect.y << ", " << rect.width << " x "
          << rect.height;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, OddJpegCrop, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace lockstep::image
