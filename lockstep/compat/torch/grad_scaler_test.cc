#include "lockstep/compat/torch/grad_scaler.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <limits>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::pytorch::amp {
namespace {

using lockstep::amp::ScalerDict;
using testing::HasSubstr;
using testing_support::refusal;

struct GradScalerTest : testing::Test {
  at::Tensor weight = at::ones({2}).requires_grad_();
  torch::optim::SGD sgd{{weight}, torch::optim::SGDOptions(1.0)};
  GradScaler scaler{{.init_scale = 8, .growth_interval = 2}};

  void backward(double factor) {
    sgd.zero_grad();
    scaler.scale((weight * factor).sum()).backward();
  }
};

TEST_F(GradScalerTest, StepsWithUnscaledGradients) {
  backward(0.5);
  EXPECT_TRUE(at::equal(weight.grad(), at::full({2}, 4.0f)));
  EXPECT_TRUE(scaler.step(sgd));
  scaler.update();
  EXPECT_TRUE(at::equal(weight, at::full({2}, 0.5f)));
  EXPECT_EQ(scaler.get_scale(), 8);
  backward(0.5);
  scaler.unscale_(sgd);
  EXPECT_TRUE(at::equal(weight.grad(), at::full({2}, 0.5f))) << "to be clipped";
  scaler.step(sgd);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 16) << "after two good steps";
}

TEST_F(GradScalerTest, AnOverflowSkipsTheStep) {
  backward(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(scaler.step(sgd));
  scaler.update();
  EXPECT_TRUE(at::equal(weight, at::ones({2})));
  EXPECT_EQ(scaler.get_scale(), 4);
}

// torch's idiom, with an overflow: unscale_, clip, step, update.
TEST_F(GradScalerTest, TheOptimizersOwnStepAfterAnOverflowIsRefused) {
  backward(std::numeric_limits<double>::infinity());
  scaler.unscale_(sgd);
  torch::nn::utils::clip_grad_norm_(weight, 1);
  EXPECT_THAT(refusal([&] { sgd.step(); }),
              HasSubstr("is not finite; the scaler's step(), in place of the optimizer's"));
  EXPECT_FALSE(scaler.step(sgd));
  EXPECT_THAT(refusal([&] { sgd.step(); }), HasSubstr("is not finite"));
  scaler.update();
  EXPECT_TRUE(at::equal(weight, at::ones({2})));
  sgd.zero_grad(/*set_to_none=*/false);
  scaler.scale((weight * 0.5).sum()).backward();
  EXPECT_TRUE(scaler.step(sgd));
  EXPECT_TRUE(at::equal(weight, at::full({2}, 0.5f)));
}

TEST_F(GradScalerTest, StepsOurOptimizersAndSparseGradients) {
  const at::Tensor table = at::ones({3, 2}).requires_grad_();
  for (const bool ours : {true, false}) {
    const auto fused = optim::make_optimizer("sgd", {table}, {{"lr", 1.0}});
    torch::optim::SGD plain({table}, torch::optim::SGDOptions(1.0));
    const optim::OptimizerRef optimizer = ours ? optim::OptimizerRef(*fused) : optim::OptimizerRef(plain);
    for (const float factor : {0.25f, std::numeric_limits<float>::infinity()}) {
      const at::Tensor before = table.detach().clone();
      table.mutable_grad().reset();
      const at::Tensor rows = at::embedding(table, at::tensor({1, 1}, at::kLong), -1, false, /*sparse=*/true);
      scaler.scale((rows * factor).sum()).backward();
      EXPECT_EQ(scaler.step(optimizer), std::isfinite(factor));
      scaler.update(8);
      const at::Tensor step = at::tensor({0.0f, std::isfinite(factor) ? 0.5f : 0.0f, 0.0f}).unsqueeze(1);
      EXPECT_TRUE(at::equal(table, before - step)) << ours;
    }
  }
}

TEST_F(GradScalerTest, RefusesCallsInAnotherOrder) {
  EXPECT_THAT(refusal([&] { scaler.update(); }), HasSubstr("no optimizer was stepped"));
  backward(1);
  scaler.unscale_(sgd);
  EXPECT_THAT(refusal([&] { scaler.unscale_(sgd); }), HasSubstr("already been called on this optimizer"));
  scaler.step(sgd);
  EXPECT_THAT(refusal([&] { scaler.unscale_(sgd); }), HasSubstr("after step()"));
  EXPECT_THAT(refusal([&] { scaler.step(sgd); }), HasSubstr("step() has already been called"));
  EXPECT_THAT(refusal([&] { scaler.update(0); }), HasSubstr("must be above 0"));
  scaler.update(32);
  EXPECT_EQ(scaler.get_scale(), 32);
}

TEST_F(GradScalerTest, StateIsTorchs) {
  const auto state = scaler.state_dict();
  EXPECT_EQ(state, (ScalerDict{{"scale", 8},
                               {"growth_factor", 2},
                               {"backoff_factor", 0.5},
                               {"growth_interval", 2},
                               {"_growth_tracker", 0}}));
  GradScaler other;
  other.load_state_dict(state);
  EXPECT_EQ(other.state_dict(), state);
  EXPECT_THROW(other.load_state_dict({{"step", 1}}), ConfigError);
  EXPECT_THROW(other.load_state_dict({{"scale", -1}}), ConfigError);
  EXPECT_EQ(other.get_scale(), 8) << "as it was";
}

TEST_F(GradScalerTest, SixteenBitGradientsNeedMasters) {
  at::Tensor narrow = at::ones({2}, at::kHalf).requires_grad_();
  torch::optim::SGD other({narrow}, torch::optim::SGDOptions(1.0));
  scaler.scale(narrow.sum()).backward();
  EXPECT_THAT(refusal([&] { scaler.unscale_(other); }), HasSubstr("initialize at O2"));
}

TEST_F(GradScalerTest, SwitchedOffItDoesNothing) {
  GradScaler off({.enabled = false});
  off.scale(weight.sum()).backward();
  off.unscale_(sgd);
  EXPECT_TRUE(off.step(sgd));
  off.update();
  EXPECT_TRUE(at::equal(weight, at::zeros({2})));
}

}  // namespace
}  // namespace lockstep::pytorch::amp
