#include "lockstep/optim/rules/sgd.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/optim/testing/rule_checks.h"

namespace lockstep::optim {
namespace {

at::Tensor parameter(float value) { return at::full({3}, value).requires_grad_(); }

void step(SGD& optimizer, const at::Tensor& p, float gradient) {
  p.mutable_grad() = at::full({3}, gradient);
  optimizer.update({});
}

// By hand: buffer 2, then 0.5 · 2 + 0.75 · 4 = 4.
TEST(Sgd, DampensAllGradientsButTheFirst) {
  const at::Tensor p = parameter(10);
  SGD optimizer({p}, {.lr = 1, .momentum = 0.5, .dampening = 0.25});
  step(optimizer, p, 2);
  EXPECT_EQ(p[0].item().toFloat(), 8);
  step(optimizer, p, 4);
  EXPECT_EQ(p[0].item().toFloat(), 4);
}

// By hand: buffer 2, step 2 + 0.5 · 2 = 3; buffer 0.5 · 2 + 4 = 5, step 4 + 0.5 · 5 = 6.5.
TEST(Sgd, NesterovLooksAhead) {
  const at::Tensor p = parameter(10);
  SGD optimizer({p}, {.lr = 1, .momentum = 0.5, .nesterov = true});
  step(optimizer, p, 2);
  EXPECT_EQ(p[0].item().toFloat(), 7);
  step(optimizer, p, 4);
  EXPECT_EQ(p[0].item().toFloat(), 0.5);
}

TEST(Sgd, KeepsNoStateWithoutMomentum) {
  const at::Tensor p = parameter(10);
  SGD optimizer({p}, {.lr = 1, .weight_decay = 0.5});
  step(optimizer, p, 1);
  EXPECT_EQ(p[0].item().toFloat(), 4);  // 10 - (1 + 0.5 · 10)
  EXPECT_TRUE(optimizer.state_dict().parameters.empty());
}

TEST(Sgd, TakesABufferThatPyTorchSavedAsNone) {
  const at::Tensor p = parameter(10);
  SGD optimizer({p}, {.lr = 1, .momentum = 0.5, .dampening = 0.25});
  OptimizerState state = optimizer.state_dict();
  state.parameters.push_back({.index = 0, .tensors = {{"momentum_buffer", at::Tensor()}}});
  optimizer.load_state_dict(state);
  step(optimizer, p, 2);
  EXPECT_EQ(p[0].item().toFloat(), 8);
}

TEST(Sgd, RefusesOptionsOutOfRange) {
  EXPECT_NO_THROW(SgdOptions{}.check());
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const SgdOptions& bad : {SgdOptions{.lr = -1}, SgdOptions{.lr = kNan}, SgdOptions{.momentum = -0.1},
                                SgdOptions{.dampening = kNan}, SgdOptions{.weight_decay = -1}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
}

TEST(Sgd, NesterovNeedsUndampedMomentum) {
  EXPECT_THROW((SgdOptions{.nesterov = true}.check()), ConfigError);
  EXPECT_THROW((SgdOptions{.momentum = 0.9, .dampening = 0.1, .nesterov = true}.check()), ConfigError);
  EXPECT_NO_THROW((SgdOptions{.momentum = 0.9, .nesterov = true}.check()));
}

TEST(SgdRule, FollowsItsDefinition) {
  SgdRule rule{.multiplier = 0.5,
               .lr = 0.1,
               .weight_decay = 0.01,
               .momentum = 0,
               .undamped = 0.75,
               .nesterov = false,
               .first = false};
  const auto define = [&](testing::One& e) {
    long double g = e.g * rule.multiplier + e.p * rule.weight_decay;
    if (rule.momentum != 0) {
      e.s[0] = rule.first ? g : e.s[0] * rule.momentum + g * rule.undamped;
      g = rule.nesterov ? g + e.s[0] * rule.momentum : e.s[0];
    }
    e.p = e.p * rule.shrink - rule.lr * g;
  };
  testing::expect_definition(rule, 0, define);
  rule.momentum = 0.9;
  testing::expect_definition(rule, 1, define);
  rule.nesterov = true;
  testing::expect_definition(rule, 1, define);
  rule.first = true;
  rule.multiplier = -1;
  testing::expect_definition(rule, 1, define);
  rule.first = rule.nesterov = false;
  rule.weight_decay = 0;
  rule.shrink = 0.99;
  testing::expect_definition(rule, 1, define);
}

TEST(SgdRule, IsTheSameOnDevices) {
  SgdRule rule{
      .multiplier = 0.5, .lr = 0.1, .weight_decay = 0, .momentum = 0, .undamped = 1, .nesterov = false, .first = false};
  testing::expect_device_follows(rule, 0);
  rule.weight_decay = 0.01;
  rule.momentum = 0.9;
  rule.undamped = 0.8;
  rule.nesterov = true;
  testing::expect_device_follows(rule, 1);
  rule.undamped = 1;
  rule.nesterov = false;
  rule.first = true;
  testing::expect_device_follows(rule, 1);
  rule.shrink = 0.99;
  testing::expect_device_follows(rule, 1);
}

}  // namespace
}  // namespace lockstep::optim
