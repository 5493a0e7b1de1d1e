#include "lockstep/optim/kernels/average.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::optim {
namespace {

TEST(AverageParameter, MovesByAShareOfTheWay) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor weights = at::full({1000}, 3, dtype), average = at::full({1000}, 1, dtype);
    average_parameter(weights, average, 0.25);
    EXPECT_TRUE(average.eq(1.5).all().item<bool>());
    EXPECT_TRUE(weights.eq(3).all().item<bool>());
  }
}

TEST(AverageParameter, OfSixteenBitWeightsIsInFp32) {
  const at::Tensor weights = at::full({33}, 2, at::kBFloat16), average = at::full({33}, 1, at::kFloat);
  average_parameter(weights, average, 0.0625);
  EXPECT_TRUE(average.eq(1.0625).all().item<bool>());
}

TEST(AverageParameter, AShareOfOneCopies) {
  const at::Tensor weights = at::randn({65}), average = at::zeros({65});
  average_parameter(weights, average, 1);
  EXPECT_TRUE(at::equal(average, weights));
}

}  // namespace
}  // namespace lockstep::optim
