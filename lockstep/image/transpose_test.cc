#include "lockstep/image/transpose.h"

#include <gtest/gtest.h>

#include "lockstep/base/draw.h"
#include "lockstep/base/error.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

TEST(Transpose, ExchangesRowsAndColumnsOfImageAndMask) {
  Sample sample{picture({9, 6}), picture({9, 6}, 1)};
  Scratch scratch;
  transpose(1)->apply(sample, Draw{}.stream(128), scratch);
  const Pixels image = picture({9, 6}), mask = picture({9, 6}, 1);
  ASSERT_EQ(sample.image.size(), (Size{6, 9}));
  ASSERT_EQ(sample.mask.size(), (Size{6, 9}));
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 9; ++x) {
      EXPECT_EQ(sample.image.at(y, x)[2], image.at(x, y)[2]);
      EXPECT_EQ(sample.mask.at(y, x)[0], mask.at(x, y)[0]);
    }
  }
}

TEST(Transpose, TakesItsShareOfTheImages) {
  Scratch scratch;
  int exchanged = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    Sample sample{picture({3, 2}), {}};
    transpose(0.3)->apply(sample, Draw{1, 0, i}.stream(128), scratch);
    exchanged += sample.image.width() == 2 ? 1 : 0;
    EXPECT_EQ(sample.mask.size(), Size{});
  }
  EXPECT_NEAR(exchanged, 300, 60);
}

TEST(Transpose, SharesAreFromZeroToOne) {
  EXPECT_THROW(transpose(1.5), ConfigError);
  EXPECT_THROW(transpose(-0.1), ConfigError);
}

}  // namespace
}  // namespace lockstep::image
