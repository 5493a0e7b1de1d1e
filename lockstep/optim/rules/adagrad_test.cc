#include "lockstep/optim/rules/adagrad.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/optim/testing/rule_checks.h"

namespace lockstep::optim {
namespace {

// By hand: sum 9 then 25; rates 1 and 1 / (1 + 1 · 1) = 0.5.
TEST(Adagrad, DividesByTheRootOfTheSumAndDecays) {
  const at::Tensor p = at::full({5}, 10.0).requires_grad_();
  Adagrad optimizer({p}, {.lr = 1, .lr_decay = 1, .eps = 0});
  p.mutable_grad() = at::full({5}, 3.0);
  optimizer.update({});
  EXPECT_EQ(p[0].item().toFloat(), 9);
  p.mutable_grad() = at::full({5}, 4.0);
  optimizer.update({});
  EXPECT_FLOAT_EQ(p[0].item().toFloat(), 8.6F);  // 9 - 0.5 · 4 / 5
}

TEST(Adagrad, HasItsStateFromTheStart) {
  const at::Tensor p = at::zeros({2, 2}).requires_grad_();
  const Adagrad optimizer({p}, {.initial_accumulator_value = 0.5});
  const OptimizerState state = optimizer.state_dict();
  ASSERT_EQ(state.parameters.size(), 1u);
  ASSERT_EQ(state.parameters[0].tensors.size(), 2u);
  EXPECT_EQ(state.parameters[0].tensors[0].name, "step");
  EXPECT_EQ(state.parameters[0].tensors[0].value.item().toFloat(), 0);
  EXPECT_EQ(state.parameters[0].tensors[1].name, "sum");
  EXPECT_TRUE(at::equal(state.parameters[0].tensors[1].value, at::full({2, 2}, 0.5)));
}

TEST(Adagrad, RefusesOptionsOutOfRange) {
  EXPECT_NO_THROW(AdagradOptions{}.check());
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const AdagradOptions& bad :
       {AdagradOptions{.lr = -1}, AdagradOptions{.lr_decay = -1}, AdagradOptions{.weight_decay = kNan},
        AdagradOptions{.initial_accumulator_value = -1}, AdagradOptions{.eps = -1}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
}

TEST(AdagradRule, FollowsItsDefinition) {
  const AdagradRule rule{.multiplier = 2, .lr = 0.1, .weight_decay = 0.01, .eps = 1e-3};
  const auto define = [&](testing::One& e) {
    const long double g = e.g * rule.multiplier + e.p * rule.weight_decay;
    e.s[0] += g * g;
    e.p -= rule.lr * g / (std::sqrt(e.s[0]) + rule.eps);
  };
  testing::expect_definition(rule, 1, define, [](auto& state) { std::swap(state[0], state[1]); });
}

TEST(AdagradRule, IsTheSameOnDevices) {
  testing::expect_device_follows(AdagradRule{.multiplier = 2, .lr = 0.1, .weight_decay = 0.01, .eps = 1e-10}, 1);
}

}  // namespace
}  // namespace lockstep::optim
