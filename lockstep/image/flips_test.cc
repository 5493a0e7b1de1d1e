#include "lockstep/image/flips.h"

#include <gtest/gtest.h>

#include "lockstep/base/draw.h"
#include "lockstep/base/error.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

TEST(Flip, TurnsItsShareOfTheImages) {
  int flipped = 0;
  for (uint64_t i = 0; i < 4000; ++i) flipped += flip_x(0.3)->plan(whole({10, 8}), Draw{1, 0, i}.stream(32))->flip_x;
  EXPECT_NEAR(flipped, 1200, 120);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(flip_y(1)->plan(whole({10, 8}), Draw{1, 0, i}.stream(48))->flip_y);
    EXPECT_FALSE(flip_y(0)->plan(whole({10, 8}), Draw{1, 0, i}.stream(48))->flip_y);
  }
}

TEST(Flip, MovesImageAndMask) {
  Sample sample{picture({9, 6}), picture({9, 6}, 1)};
  Scratch scratch;
  flip_x(1)->apply(sample, Draw{}.stream(32), scratch);
  flip_y(1)->apply(sample, Draw{}.stream(48), scratch);
  const Pixels image = picture({9, 6}), mask = picture({9, 6}, 1);
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 9; ++x) {
      EXPECT_EQ(sample.image.at(x, y)[2], image.at(8 - x, 5 - y)[2]);
      EXPECT_EQ(sample.mask.at(x, y)[0], mask.at(8 - x, 5 - y)[0]);
    }
  }
}

TEST(Flip, SharesAreFromZeroToOne) {
  EXPECT_THROW(flip_x(1.5), ConfigError);
  EXPECT_THROW(flip_y(-0.1), ConfigError);
}

}  // namespace
}  // namespace lockstep::image
