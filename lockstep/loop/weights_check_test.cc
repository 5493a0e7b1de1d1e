#include "lockstep/loop/weights_check.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <limits>

namespace lockstep::loop {
namespace {

TEST(WeightsCheck, AHashIsOfEveryBit) {
  torch::nn::Linear net(4, 3);
  const at::NoGradGuard no_grad;
  const std::string before = hash_of_weights(*net);
  EXPECT_EQ(hash_of_weights(*net), before);
  const at::Tensor kept = net->weight[1][2].clone();
  net->weight[1][2] += 1;
  EXPECT_NE(hash_of_weights(*net), before);
  net->weight[1][2] = kept;
  EXPECT_EQ(hash_of_weights(*net), before);
}

TEST(WeightsCheck, NansAndInfinitiesAreNamed) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    torch::nn::Linear net(4, 3);
    net->to(type);
    const at::NoGradGuard no_grad;
    EXPECT_EQ(find_not_finite(*net), "");
    net->bias[1] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(find_not_finite(*net), "bias");
    net->weight[0][0] = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(find_not_finite(*net), "weight");
  }
}

}  // namespace
}  // namespace lockstep::loop
