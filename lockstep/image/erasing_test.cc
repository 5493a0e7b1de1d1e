#include "lockstep/image/erasing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lockstep/base/draw.h"
#include "lockstep/base/error.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

Sample applied(const ErasingOptions& options, uint64_t number, int channels = 3) {
  Sample sample{flat({60, 50}, channels, 1), flat({60, 50}, 1, 1)};
  Scratch scratch;
  random_erasing(options)->apply(sample, Draw{1, 0, number}.stream(96), scratch);
  return sample;
}

int erased(const Sample& sample) {
  int count = 0;
  for (int i = 0; i < 60 * 50; ++i) count += sample.image.at(i % 60, i / 60)[0] != 1;
  return count;
}

TEST(RandomErasing, ErasesARectangleOfItsShare) {
  int images = 0;
  double area = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const Sample sample = applied({.share = 0.25}, i);
    const int count = erased(sample);
    images += count > 0;
    area += count / (60.0 * 50);
    ASSERT_LE(count, 0.36 * 60 * 50);
    ASSERT_EQ(difference(sample.mask, flat({60, 50}, 1, 1)), 0);
  }
  EXPECT_NEAR(images, 500, 80);
  EXPECT_NEAR(area / images, 0.17, 0.02);
  EXPECT_EQ(erased(applied({.share = 0}, 3)), 0);
}

TEST(RandomErasing, FillsWithAValueOrNoise) {
  for (uint64_t i = 0; i < 20; ++i) {
    const Sample plain = applied({.share = 1, .value = {9, 8, 7}}, i), noisy = applied({.share = 1, .noise = true}, i);
    for (int k = 0; k < 60 * 50; ++k) {
      const uint8_t* pixel = plain.image.at(k % 60, k / 60);
      ASSERT_TRUE((pixel[0] == 9 && pixel[1] == 8 && pixel[2] == 7) || (pixel[0] == 1 && pixel[1] == 1));
      if (pixel[0] == 1) ASSERT_EQ(noisy.image.at(k % 60, k / 60)[0], 1);  // the same rectangle
    }
  }
  EXPECT_GT(erased(applied({.share = 1}, 2, 1)), 0);  // grey
}

TEST(RandomErasing, HasTheRecordedBits) {
  uint64_t hash = kFnvSeed;
  for (uint64_t i = 0; i < 30; ++i) hash = hash_of(applied({.share = 1, .noise = i % 2 == 0}, i).image, hash);
  EXPECT_EQ(hash, 12042975219660214282u);
}

TEST(RandomErasing, NoiseStaysInItsSlot) {
  Scratch scratch;
  Sample sample{flat({3000, 3000}, 3, 1), {}};
  random_erasing({.share = 1, .scale_low = 0.6, .scale_high = 0.6, .ratio_low = 1, .ratio_high = 1, .noise = true})
      ->apply(sample, Draw{1, 0, 5}.stream(96), scratch);
  RandomStream next = Draw{1, 0, 5}.stream(97);
  std::array<uint8_t, 12> of_next{};  // four pixels of the numbers of the next slot
  for (size_t i = 0; i < 4; ++i) {
    const uint32_t bits = next.bits();
    for (size_t c = 0; c < 3; ++c) of_next[3 * i + c] = static_cast<uint8_t>(bits >> (8 * c));
  }
  std::vector<uint8_t> values;
  for (int y = 0; y < 3000; ++y) {
    for (int x = 0; x < 3000; ++x) {
      const uint8_t* const pixel = sample.image.at(x, y);
      if (pixel[0] != 1 || pixel[1] != 1 || pixel[2] != 1) values.insert(values.end(), pixel, pixel + 3);
    }
  }
  EXPECT_GT(values.size(), size_t{3} << 22);
  EXPECT_EQ(std::search(values.begin(), values.end(), of_next.begin(), of_next.end()), values.end());
}

TEST(RandomErasing, OptionsAreChecked) {
  EXPECT_THROW(random_erasing({.share = 2}), ConfigError);
  EXPECT_THROW(random_erasing({.scale_low = 0.5}), ConfigError);
  EXPECT_THROW(random_erasing({.ratio_low = 0}), ConfigError);
  EXPECT_EQ(random_erasing({.share = 0.1})->text(), "RandomErasing 0.1");
  EXPECT_EQ(random_erasing({.scale_high = 0.2, .ratio_low = 1, .value = {0, 7, 9}})->text(),
            "RandomErasing 0.5 (0.02 to 0.2) (ratio 1 to 3.3) (value 0 7 9)");
  EXPECT_EQ(random_erasing({.noise = true})->text(), "RandomErasing 0.5 (noise)");
}

}  // namespace
}  // namespace lockstep::image
