#include "lockstep/schedule/lr_shapes.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::schedule {
namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max();

TEST(LrShapes, RestartsAreFoundWithoutOverflow) {
  const CosineRestartsLr equal{.t_0 = 7, .t_mult = 1};
  EXPECT_EQ(equal.cycle(6).t_cur, 6);
  EXPECT_EQ(equal.cycle(7).t_cur, 0);
  EXPECT_EQ(equal.cycle(kFar).t_cur, kFar % 7);
  const CosineRestartsLr longer{.t_0 = 10, .t_mult = 3};
  EXPECT_EQ(longer.cycle(9).t_i, 10);
  EXPECT_EQ(longer.cycle(10).t_i, 30);
  EXPECT_EQ(longer.cycle(39).t_cur, 29);
  EXPECT_EQ(longer.cycle(40).t_i, 90);
  const auto [t_cur, t_i] = longer.cycle(kFar);
  EXPECT_TRUE(0 <= t_cur && t_cur < t_i);
}

// PyTorch's lies between two steps wherever pct_start · total_steps is no whole number.
TEST(LrShapes, ACycleRisesAndFallsAroundItsPeak) {
  const OneCycleLr cycle{.max_lr = 1, .total_steps = 61};
  EXPECT_DOUBLE_EQ(cycle.peak(), 17.3);
  for (int64_t t = 1; t <= 17; ++t) EXPECT_GT(cycle.at({}, t), cycle.at({}, t - 1)) << t;
  for (int64_t t = 19; t <= 60; ++t) EXPECT_LT(cycle.at({}, t), cycle.at({}, t - 1)) << t;
  EXPECT_EQ(OneCycleLr({.max_lr = 1, .total_steps = 60}).at({}, 17), 1) << "the peak is a step";
}

TEST(LrShapes, TheShortestCyclesHaveRates) {
  EXPECT_DOUBLE_EQ(OneCycleLr({.max_lr = 1, .total_steps = 1}).at({}, 0), 1 / 25.0 / 1e4);
  EXPECT_EQ(OneCycleLr({.max_lr = 1, .total_steps = 10, .pct_start = 0.1}).at({}, 0), 1) << "a rise of no steps";
  EXPECT_LT(OneCycleLr({.max_lr = 1, .total_steps = 10, .pct_start = 0}).at({}, 0), 1);
}

TEST(LrShapes, APolynomialOfPowerOneIsAStraightLine) {
  const PolynomialLr line{.total_iters = 4};
  for (int64_t t = 0; t <= 6; ++t) {
    EXPECT_EQ(line.at({.base = 8}, t), t < 4 ? 8 - 2 * static_cast<double>(t) : 0) << t;
  }
}

TEST(LrShapes, ADropIsAtItsMilestoneAndTwiceAtADoubleOne) {
  const MultiStepLr drops{.milestones = {3, 5, 5}, .gamma = 0.5};
  EXPECT_EQ(drops.at({.base = 8}, 2), 8);
  EXPECT_EQ(drops.at({.base = 8}, 3), 4);
  EXPECT_EQ(drops.at({.base = 8}, 5), 1);
}

}  // namespace
}  // namespace lockstep::schedule
