#include "lockstep/parallel/lane_losses.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

LaneLoss of(double weight, double value) { return {.weight = weight, .value = at::scalar_tensor(value, at::kDouble)}; }

TEST(LaneLosses, AreWeightedAndAddedInTheTreesOrder) {
  EXPECT_EQ(sum_of({of(0.5, 3)}), 1.5);
  EXPECT_EQ(sum_of({of(1, 1e16), of(1, 1), of(1, 1), of(1, 1)}), (1e16 + 1) + (1. + 1.));
  EXPECT_NE(sum_of({of(1, 1e16), of(1, 1), of(1, 1), of(1, 1)}), ((1e16 + 1) + 1) + 1) << "tells orders apart";
}

TEST(LaneLosses, ALaneWithoutSamplesAddsNothing) {
  EXPECT_EQ(sum_of({of(1, 2), LaneLoss{}}), 2);
  EXPECT_EQ(sum_of({LaneLoss{}}), 0);
}

}  // namespace
}  // namespace lockstep::parallel
