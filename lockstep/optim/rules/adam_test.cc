#include "lockstep/optim/rules/adam.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/optim/testing/rule_checks.h"

namespace lockstep::optim {
namespace {

at::Tensor step_once(FusedOptimizer& optimizer, const at::Tensor& p, double gradient) {
  p.mutable_grad() = at::full_like(p, gradient);
  optimizer.update({});
  return p.detach();
}

// The first step of Adam is lr whatever the size of the gradient.
TEST(Adam, CorrectsTheBiasOfItsAverages) {
  for (const double gradient : {1e-3, 1.0, 1e3}) {
    const at::Tensor p = at::full({19}, 1.0).requires_grad_();
    Adam optimizer({p}, {.lr = 0.25, .eps = 0});
    EXPECT_TRUE(at::allclose(step_once(optimizer, p, gradient), at::full({19}, 0.75)));
  }
}

TEST(Adam, WeightDecayIsPartOfTheGradientAndOfAdamWIsNot) {
  const at::Tensor p = at::full({19}, 1.0).requires_grad_();
  Adam adam({p}, {.lr = 0.25, .eps = 0, .weight_decay = 0.5});
  EXPECT_TRUE(at::allclose(step_once(adam, p, 1e-3), at::full({19}, 0.75)));

  const at::Tensor q = at::full({19}, 1.0).requires_grad_();
  AdamW adamw({q}, {.lr = 0.25, .eps = 0, .weight_decay = 0.5});
  EXPECT_TRUE(at::allclose(step_once(adamw, q, 1e-3), at::full({19}, 1 - 0.25 * 0.5 - 0.25)));
}

TEST(Adam, AmsgradKeepsTheLargestSquare) {
  const at::Tensor p = at::zeros({19}).requires_grad_();
  Adam optimizer({p}, {.betas = {0.9, 0.5}, .amsgrad = true});
  step_once(optimizer, p, 8);
  step_once(optimizer, p, 0);
  const std::vector<NamedTensor> state = optimizer.state_dict().parameters[0].tensors;
  ASSERT_EQ(state.size(), 4u);
  EXPECT_EQ(state[2].value[0].item().toFloat(), 16);
  EXPECT_EQ(state[3].name, "max_exp_avg_sq");
  EXPECT_EQ(state[3].value[0].item().toFloat(), 32);
}

TEST(Adam, AmsgradTurnedOnLaterStartsFromNothing) {
  const at::Tensor p = at::zeros({19}).requires_grad_();
  Adam optimizer({p}, {});
  step_once(optimizer, p, 1);
  static_cast<Group<AdamOptions>&>(optimizer.param_groups()[0].options()).values.amsgrad = true;
  step_once(optimizer, p, 1);
  EXPECT_EQ(optimizer.state_dict().parameters[0].tensors.size(), 4u);
}

TEST(Adam, RefusesOptionsOutOfRange) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NO_THROW(AdamOptions{}.check());
  EXPECT_NO_THROW(AdamWOptions{}.check());
  EXPECT_EQ(AdamOptions{}.weight_decay, 0);
  EXPECT_EQ(AdamWOptions{}.weight_decay, 0.01);
  for (const AdamOptions& bad : {AdamOptions{.lr = -1}, AdamOptions{.betas = {1.0, 0.9}},
                                 AdamOptions{.betas = {0.9, -0.1}}, AdamOptions{.eps = kNan}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
}

TEST(AdamRule, FollowsItsDefinition) {
  AdamRule rule{.multiplier = 2,
                .weight_decay = 0.01,
                .shrink = 0.875,
                .new_share = 0.1,
                .beta2 = 0.99,
                .step_size = 0.1,
                .root_correction = 0.5,
                .eps = 1e-3};
  bool amsgrad = false;
  const auto define = [&](testing::One& e) {
    const long double g = e.g * rule.multiplier + e.p * rule.weight_decay;
    e.s[0] += rule.new_share * (g - e.s[0]);
    e.s[1] = rule.beta2 * e.s[1] + (1 - rule.beta2) * g * g;
    e.s[2] = std::max(e.s[2], e.s[1]);
    const long double root = std::sqrt(amsgrad ? e.s[2] : e.s[1]) / rule.root_correction;
    e.p = e.p * rule.shrink - rule.step_size * e.s[0] / (root + rule.eps);
  };
  for (const double share : {0.1, 0.7}) {
    rule.new_share = share;
    amsgrad = false;
    testing::expect_definition(rule, 2, define);
    amsgrad = true;
    testing::expect_definition(rule, 3, define);
  }
}

// A device's form computes the rule's numbers from the options.
TEST(AdamRule, IsTheSameOnDevices) {
  constexpr double kLr = 0.05, kBeta1 = 0.9, kBeta2 = 0.95;
  constexpr int kCount = 3;
  AdamRule rule{.multiplier = 1,
                .weight_decay = 0.01,
                .shrink = 1,
                .new_share = 1 - kBeta1,
                .beta2 = kBeta2,
                .step_size = kLr / (1 - std::pow(kBeta1, kCount)),
                .root_correction = std::sqrt(1 - std::pow(kBeta2, kCount)),
                .eps = 1e-8,
                .lr = kLr,
                .beta1 = kBeta1,
                .count = kCount};
  testing::expect_device_follows(rule, 2);
  rule.weight_decay = 0;
  rule.decoupled_decay = 0.2;
  rule.shrink = 1 - kLr * rule.decoupled_decay;
  testing::expect_device_follows(rule, 3);
}

}  // namespace
}  // namespace lockstep::optim
