#include "lockstep/amp/master_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/error.h"

namespace lockstep::amp {
namespace {

struct MasterWeightsTest : testing::Test {
  at::Tensor narrow = at::ones({3}, at::kBFloat16).requires_grad_(), wide = at::ones({2}).requires_grad_();
  torch::optim::SGD sgd{{narrow, wide}, torch::optim::SGDOptions(1.0)};
};

TEST_F(MasterWeightsTest, TheOptimizerStepsThem) {
  MasterWeights masters(sgd);
  ASSERT_EQ(masters.masters().size(), 1u);
  EXPECT_EQ(sgd.param_groups()[0].params()[0].scalar_type(), at::kFloat);
  (narrow.sum() * 8 + wide.sum() * 8).backward();
  EXPECT_TRUE(masters.take_gradients(1.0 / 8192));
  sgd.step();
  masters.write_weights();
  EXPECT_TRUE(at::equal(masters.masters()[0], at::full({3}, 1 - 1.0f / 1024)));
  EXPECT_TRUE(at::equal(narrow, at::ones({3}, at::kBFloat16))) << "too small a step for 8 bits of mantissa";
  EXPECT_TRUE(at::equal(wide, at::full({2}, 1 - 1.0f / 1024)));
  for (int step = 0; step < 3; ++step) {
    sgd.step();
    masters.write_weights();
  }
  EXPECT_LT(narrow[0].item<float>(), 1) << "but four of them count";
}

TEST_F(MasterWeightsTest, AWeightWithoutGradientLeavesItsMasterNone) {
  MasterWeights masters(sgd);
  narrow.sum().backward();
  masters.take_gradients(1);
  masters.drop_model_gradients();
  EXPECT_TRUE(masters.masters()[0].grad().defined());
  masters.take_gradients(1);
  EXPECT_FALSE(masters.masters()[0].grad().defined());
}

TEST_F(MasterWeightsTest, ComesBeforeTheFirstStep) {
  torch::optim::SGD momentum({wide}, torch::optim::SGDOptions(1.0).momentum(0.9));
  wide.sum().backward();
  momentum.step();
  EXPECT_THROW(MasterWeights{momentum}, ConfigError);
}

}  // namespace
}  // namespace lockstep::amp
