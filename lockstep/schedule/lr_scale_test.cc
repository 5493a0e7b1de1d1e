#include "lockstep/schedule/lr_scale.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::schedule {
namespace {

TEST(LrScale, FollowsTheGlobalBatch) {
  EXPECT_EQ(linear_lr_factor(64, 64), 1);
  EXPECT_EQ(linear_lr_factor(256, 64), 4);
  EXPECT_EQ(linear_lr_factor(32, 64), 0.5);
  EXPECT_EQ(sqrt_lr_factor(256, 64), 2);
  EXPECT_EQ(sqrt_lr_factor(64, 64), 1);
  EXPECT_EQ(sqrt_lr_factor(16, 64), 0.5);
}

TEST(LrScale, NeedsSamples) {
  EXPECT_THROW(linear_lr_factor(0, 64), BugError);
  EXPECT_THROW(sqrt_lr_factor(64, 0), BugError);
}

}  // namespace
}  // namespace lockstep::schedule
