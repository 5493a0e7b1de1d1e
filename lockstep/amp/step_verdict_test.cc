#include "lockstep/amp/step_verdict.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::amp {
namespace {

struct StepVerdictTest : testing::Test {
  at::Tensor weight = at::zeros({2}).requires_grad_();
  std::unique_ptr<optim::FusedOptimizer> sgd = optim::make_optimizer("sgd", {weight}, {{"lr", 1.0}});
  LossScaler scaler{{.enabled = true, .init_scale = 4}};

  static FoldedGradients folded(const at::Tensor& gradient, double scale) {
    return {.square_sum = gradient.square().sum().item<double>(), .loss_scale = scale};
  }
  StepReport step(const at::Tensor& gradient, const StepOptions& options = {}) {
    weight.mutable_grad() = gradient;
    const Verdict verdict = judge(scaler, folded(gradient, scaler.scale()), options);
    if (!verdict.report.skipped) sgd->update(verdict.update);
    return verdict.report;
  }
};

TEST_F(StepVerdictTest, UnscalesWithinTheUpdate) {
  const StepReport report = step(at::tensor({12.0f, 16.0f}));
  EXPECT_TRUE(at::equal(weight, at::tensor({-3.0f, -4.0f})));
  EXPECT_EQ(report.gradient_norm, 5);
  EXPECT_TRUE(report.finite && !report.skipped);
}

TEST_F(StepVerdictTest, ClipsWhatIsUnscaled) {
  step(at::tensor({12.0f, 16.0f}), {.max_norm = 2.5});
  EXPECT_TRUE(at::allclose(weight, at::tensor({-1.5f, -2.0f}), 1e-5));
  step(at::tensor({12.0f, 16.0f}), {.max_value = 1});
  EXPECT_TRUE(at::allclose(weight, at::tensor({-2.5f, -3.0f}), 1e-5));
}

TEST_F(StepVerdictTest, AnOverflowSkipsTheStepAndHalvesTheScale) {
  const StepReport report = step(at::tensor({1.0f, std::numeric_limits<float>::infinity()}));
  EXPECT_TRUE(report.skipped && !report.finite);
  EXPECT_TRUE(at::equal(weight, at::zeros({2})));
  EXPECT_EQ(scaler.scale(), 2);
  EXPECT_EQ(scaler.skipped_in_a_row(), 1);
  step(at::ones({2}));
  EXPECT_EQ(scaler.skipped_in_a_row(), 0);
}

// What was run before the scale changed.
TEST_F(StepVerdictTest, AnotherScalesGradientsSayLittleOfThePresentOne) {
  const at::Tensor good = at::ones({2}), bad = at::full({2}, std::numeric_limits<float>::infinity());
  const auto skips = [&](const at::Tensor& gradient, double scale) {
    return judge(scaler, folded(gradient, scale), {}).report.skipped;
  };
  EXPECT_TRUE(skips(bad, 8));
  EXPECT_EQ(scaler.scale(), 4) << "half of that";
  EXPECT_FALSE(skips(good, 2));
  EXPECT_FALSE(skips(good, 8));
  EXPECT_EQ(scaler.state().good_steps, 0);
  EXPECT_EQ(judge(scaler, folded(good, 8), {}).update.grad_multiplier, 1.0 / 8);
  EXPECT_TRUE(skips(bad, 2));
  EXPECT_EQ(scaler.scale(), 2) << "4 would overflow as well";
  EXPECT_TRUE(judge(scaler, folded(bad, 2), {}, true).report.skipped);
  EXPECT_EQ(scaler.scale(), 2) << "it was seen already";
}

TEST_F(StepVerdictTest, WhatIsUnscaledIsNotDividedAgain) {
  FoldedGradients gradients = folded(at::tensor({12.0f, 16.0f}), 4);
  gradients.unscaled = true;
  const Verdict verdict = judge(scaler, gradients, {});
  EXPECT_EQ(verdict.report.gradient_norm, 5);
  EXPECT_EQ(verdict.update.grad_multiplier, 1);
  EXPECT_EQ(verdict.update.loss_scale, 1);
}

TEST_F(StepVerdictTest, WithoutAScalerEveryStepIsTaken) {
  scaler = LossScaler();
  const StepReport report = step(at::tensor({1.0f, NAN}));
  EXPECT_TRUE(!report.skipped && !report.finite);
  EXPECT_EQ(weight[0].item<float>(), -1);
}

}  // namespace
}  // namespace lockstep::amp
