#include "lockstep/amp/master_weights.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep::amp {
namespace {

using testing::HasSubstr;
using testing_support::refusal;

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
  masters.step();
  EXPECT_TRUE(at::equal(masters.masters()[0], at::full({3}, 1 - 1.0f / 1024)));
  EXPECT_TRUE(at::equal(narrow, at::ones({3}, at::kBFloat16))) << "too small a step for 8 bits of mantissa";
  EXPECT_TRUE(at::equal(wide, at::full({2}, 1 - 1.0f / 1024)));
  for (int step = 0; step < 3; ++step) masters.step();
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

TEST_F(MasterWeightsTest, BeginWithTheExactValues) {
  MasterWeights masters(sgd, {{narrow.unsafeGetTensorImpl(), at::full({3}, 1.001f)}});
  narrow.sum().backward();
  masters.take_gradients(0);
  masters.step();
  EXPECT_TRUE(at::equal(masters.masters()[0], at::full({3}, 1.001f)));
}

TEST_F(MasterWeightsTest, FollowAWeightThatIsWritten) {
  MasterWeights masters(sgd);
  for (const float value : {5.0f, 7.0f}) {
    {
      const at::NoGradGuard no_grad;
      narrow.fill_(value);
    }
    sgd.zero_grad();
    (narrow.sum() * 2).backward();
    masters.take_gradients(1);
    masters.step();
    EXPECT_TRUE(at::equal(masters.masters()[0], at::full({3}, value - 2)));
    masters.zero_grad();
    masters.drop_model_gradients();
  }
}

// Gradual unfreezing: its gradients are unscaled, and it gets a master of its own.
TEST_F(MasterWeightsTest, AGroupThatIsAddedIsTakenOver) {
  MasterWeights masters(sgd);
  at::Tensor late = at::ones({3}, at::kBFloat16).requires_grad_(), late_wide = at::ones({2}).requires_grad_();
  sgd.add_param_group(torch::optim::OptimizerParamGroup({late, late_wide}));
  (late.sum() * 8 + late_wide.sum() * 8 + narrow.sum() * 8).backward();
  EXPECT_TRUE(masters.take_gradients(1.0 / 8192));
  masters.step();
  ASSERT_EQ(masters.masters().size(), 2u);
  EXPECT_TRUE(at::equal(masters.masters()[1], at::full({3}, 1 - 1.0f / 1024)));
  EXPECT_TRUE(at::equal(late, at::ones({3}, at::kBFloat16)));
  EXPECT_TRUE(at::equal(late_wide, at::full({2}, 1 - 1.0f / 1024)));
  EXPECT_EQ(sgd.param_groups()[1].params()[0].scalar_type(), at::kFloat);
  masters.zero_grad();
  EXPECT_FALSE(late_wide.grad().defined());
}

TEST_F(MasterWeightsTest, AParameterThatIsRemovedIsLetGo) {
  at::Tensor more = at::ones({3}, at::kBFloat16).requires_grad_();
  sgd.add_param_group(torch::optim::OptimizerParamGroup({more}));
  MasterWeights masters(sgd);
  auto& first = sgd.param_groups()[0].params();
  first.erase(first.begin());
  (narrow.sum() + wide.sum() + more.sum()).backward();
  masters.take_gradients(1);
  masters.step();
  EXPECT_TRUE(at::equal(narrow, at::ones({3}, at::kBFloat16)));
  EXPECT_TRUE(at::equal(more, at::zeros({3}, at::kBFloat16)));
  ASSERT_EQ(masters.by_parameter().size(), 2u);
  EXPECT_FALSE(masters.by_parameter()[0].defined());
  EXPECT_TRUE(masters.by_parameter()[1].is_same(masters.masters()[0]));
}

TEST_F(MasterWeightsTest, AGroupThatIsAddedAfterItsGradientsWereTakenIsRefused) {
  MasterWeights masters(sgd);
  at::Tensor late = at::ones({2}).requires_grad_();
  (narrow.sum() + late.sum() * 8192).backward();
  masters.take_gradients(1);
  sgd.add_param_group(torch::optim::OptimizerParamGroup({late}));
  EXPECT_THAT(refusal([&] { masters.step(); }), HasSubstr("the optimizer's parameters have changed"));
}

// It would step the masters, and the model would stay as it is.
TEST_F(MasterWeightsTest, TheOptimizersOwnStepIsRefused) {
  MasterWeights masters(sgd);
  (narrow.sum() * 8).backward();
  EXPECT_THAT(refusal([&] { sgd.step(); }), HasSubstr("which the optimizer's own step() would not round"));
  EXPECT_THAT(refusal([&] { masters.check_gradients(); }), HasSubstr("without gradients for the fp32 masters"));
  masters.take_gradients(1);
  EXPECT_THAT(refusal([&] { sgd.step(); }), HasSubstr("which the optimizer's own step() would not round"));
  EXPECT_NEAR(torch::nn::utils::clip_grad_norm_(masters.masters(), 1), 8 * std::sqrt(3.0), 1e-4) << "clipping works";
  masters.step();
  EXPECT_TRUE(at::allclose(masters.masters()[0], at::full({3}, 1 - 1 / std::sqrt(3.0f))));
}

// It has its state from the start.
TEST_F(MasterWeightsTest, LibtorchsAdagradKeepsItsState) {
  at::Tensor wide_twin = narrow.detach().to(at::kFloat).requires_grad_();
  const auto options = torch::optim::AdagradOptions(0.1).initial_accumulator_value(0.5);
  torch::optim::Adagrad adagrad({narrow}, options), twin({wide_twin}, options);
  MasterWeights masters(adagrad);
  for (int step = 0; step < 4; ++step) {
    narrow.mutable_grad() = at::full({3}, 0.25, at::kBFloat16);
    wide_twin.mutable_grad() = at::full({3}, 0.25f);
    masters.take_gradients(1);
    masters.step();
    twin.step();
    EXPECT_TRUE(at::equal(masters.masters()[0], wide_twin)) << step;
  }
}

}  // namespace
}  // namespace lockstep::amp
