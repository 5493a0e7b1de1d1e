#include "lockstep/base/lanes_fit.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(LanesFit, LanesFit) {
  EXPECT_TRUE(lanes_fit(4, 1));
  EXPECT_TRUE(lanes_fit(7, 1));
  EXPECT_TRUE(lanes_fit(4, 2));
  EXPECT_TRUE(lanes_fit(3, 3));
  EXPECT_TRUE(lanes_fit(6, 3));
  EXPECT_FALSE(lanes_fit(6, 2));
  EXPECT_FALSE(lanes_fit(4, 3));
  EXPECT_FALSE(lanes_fit(2, 4));
}

}  // namespace
}  // namespace lockstep
