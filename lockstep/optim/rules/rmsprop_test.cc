// fused_optimizer_test.cc compares it with libtorch's own.
#include "lockstep/optim/rules/rmsprop.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/optim/testing/rule_checks.h"

namespace lockstep::optim {
namespace {

std::vector<std::string> state_names(const RmspropOptions& options) {
  const at::Tensor p = at::ones({3}).requires_grad_();
  RMSprop optimizer({p}, options);
  p.mutable_grad() = at::ones({3});
  optimizer.update({});
  std::vector<std::string> names;
  const OptimizerState state = optimizer.state_dict();
  for (const NamedTensor& named : state.parameters[0].tensors) names.push_back(named.name);
  return names;
}

// By hand: square_avg 0.25 · 16 = 4, then 0.75 · 4 + 0.25 · 4 = 4.
TEST(RMSprop, DividesByTheRootOfTheAverageSquare) {
  const at::Tensor p = at::full({5}, 10.0).requires_grad_();
  RMSprop optimizer({p}, {.lr = 1, .alpha = 0.75, .eps = 0});
  p.mutable_grad() = at::full({5}, 4.0);
  optimizer.update({});
  EXPECT_EQ(p[0].item<float>(), 8);
  p.mutable_grad() = at::full({5}, -2.0);
  optimizer.update({});
  EXPECT_EQ(p[0].item<float>(), 9);
}

TEST(RMSprop, KeepsTheStateThatItsOptionsNeed) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(state_names({}), (Names{"step", "square_avg"}));
  EXPECT_EQ(state_names({.centered = true}), (Names{"step", "square_avg", "grad_avg"}));
  EXPECT_EQ(state_names({.momentum = 0.5}), (Names{"step", "square_avg", "momentum_buffer"}));
}

// Recorded from torch.optim.RMSprop of PyTorch 2.11.
TEST(RMSprop, FollowsPyTorch) {
  const at::Tensor p = at::tensor({1.0F, -0.5F, 0.25F, 2.0F}).requires_grad_();
  RMSprop optimizer({p}, {.lr = 0.05, .alpha = 0.9, .weight_decay = 0.01, .momentum = 0.8, .centered = true});
  for (int t = 0; t < 5; ++t) {
    p.mutable_grad() = at::tensor({0.5F, -1.0F, 0.125F, t % 2 == 0 ? 0.75F : -0.75F}) * (t + 1);
    optimizer.update({});
  }
  EXPECT_TRUE(at::allclose(p, at::tensor({-0.77581257F, 1.2772272F, -1.5242335F, 1.6433566F}), 1e-6, 1e-7)) << p;
}

TEST(RMSprop, RefusesOptionsOutOfRange) {
  EXPECT_NO_THROW(RmspropOptions{}.check());
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const RmspropOptions& bad : {RmspropOptions{.lr = kNan}, RmspropOptions{.alpha = -1}, RmspropOptions{.eps = -1},
                                    RmspropOptions{.momentum = -1}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
}

TEST(RmspropRule, FollowsItsDefinition) {
  RmspropRule rule{
      .multiplier = 2, .lr = 0.1, .weight_decay = 0.01, .alpha = 0.9, .eps = 1e-3, .momentum = 0, .centered = false};
  const auto define = [&](testing::One& e) {
    const long double g = e.g * rule.multiplier + e.p * rule.weight_decay;
    e.s[0] = rule.alpha * e.s[0] + (1 - rule.alpha) * g * g;
    if (rule.centered) e.s[1] += (1 - rule.alpha) * (g - e.s[1]);
    long double step = g / (std::sqrt(e.s[0] - (rule.centered ? e.s[1] * e.s[1] : 0)) + rule.eps);
    if (rule.momentum != 0) {
      long double& buffer = e.s[rule.centered ? 2 : 1];
      step = buffer = rule.momentum * buffer + step;
    }
    e.p -= rule.lr * step;
  };
  const auto prepare = [](auto& state) {  // of a variance above 0
    state[0] = state[1];
    for (auto& average : state[1]) average *= 0.1F;
    for (auto& square : state[0]) square += 1;
  };
  testing::expect_definition(rule, 1, define, prepare);
  rule.momentum = 0.9;
  testing::expect_definition(rule, 2, define, prepare);
  rule.centered = true;
  testing::expect_definition(rule, 3, define, prepare);
  rule.momentum = 0;
  testing::expect_definition(rule, 2, define, prepare);
}

TEST(RmspropRule, IsTheSameOnDevices) {
  RmspropRule rule{
      .multiplier = 1, .lr = 0.1, .weight_decay = 0, .alpha = 0.9, .eps = 0.1, .momentum = 0, .centered = false};
  testing::expect_device_follows(rule, 1);
  rule = {.multiplier = 1, .lr = 0.1, .weight_decay = 0.1, .alpha = 1, .eps = 4, .momentum = 0.5, .centered = false};
  testing::expect_device_follows(rule, 2);
}

// The variance must not come out below 0, as it would with random state.
TEST(RmspropRule, IsTheSameOnDevicesWhereItIsCentered) {
  const RmspropRule rule{
      .multiplier = 1, .lr = 0.1, .weight_decay = 0, .alpha = 0.9, .eps = 0.1, .momentum = 0.5, .centered = true};
  const testing::StepTensors here(at::kFloat), there(at::kFloat);
  for (const testing::StepTensors* t : {&here, &there}) {
    t->state[0].add_(40);
    step_parameter(rule, t->operands(3));
  }
  step_parameter(rule, here.operands(3));
  step_on_device(rule, there.operands(3));
  testing::expect_close(here, there, 1e-5);
}

}  // namespace
}  // namespace lockstep::optim
