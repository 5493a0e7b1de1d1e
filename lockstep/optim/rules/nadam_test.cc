#include "lockstep/optim/rules/nadam.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/optim/testing/rule_checks.h"

namespace lockstep::optim {
namespace {

at::Tensor trained(NAdam& optimizer, const at::Tensor& p, int steps) {
  for (int t = 0; t < steps; ++t) {
    p.mutable_grad() = at::tensor({0.5F, -1.0F, 0.125F, t % 2 == 0 ? 0.75F : -0.75F}) * (t + 1);
    optimizer.update({});
  }
  return p.detach();
}

at::Tensor parameter() { return at::tensor({1.0F, -0.5F, 0.25F, 2.0F}).requires_grad_(); }

// Recorded from torch.optim.NAdam of PyTorch 2.11.
TEST(NAdam, FollowsPyTorch) {
  const at::Tensor p = parameter(), q = parameter();
  NAdam plain({p}, {.lr = 0.1, .weight_decay = 0.01});
  EXPECT_TRUE(at::allclose(trained(plain, p, 5), at::tensor({0.50125843F, -0.00082583539F, -0.24858184F, 1.8931242F}),
                           1e-6, 1e-7))
      << p;
  const auto state = plain.state_dict().parameters[0].tensors;
  ASSERT_EQ(state[1].name, "mu_product");
  EXPECT_FLOAT_EQ(state[1].value.item<float>(), 0.018498037F);
  NAdam decoupled(
      {q},
      {.lr = 0.1, .betas = {0.6, 0.9}, .weight_decay = 0.1, .momentum_decay = 0.1, .decoupled_weight_decay = true});
  EXPECT_TRUE(at::allclose(trained(decoupled, q, 5), at::tensor({0.35354596F, 0.12194912F, -0.35969666F, 1.7876009F}),
                           1e-6, 1e-7))
      << q;
}

TEST(NAdam, TheProductIsANumber) {
  const at::Tensor p = parameter();
  NAdam optimizer({p});
  trained(optimizer, p, 1);
  EXPECT_TRUE(optimizer.is_number("mu_product"));
  EXPECT_FALSE(optimizer.is_number("exp_avg"));
  OptimizerState state = optimizer.state_dict();
  state.parameters[0].tensors[1].value = at::ones({4});
  EXPECT_THROW(optimizer.load_state_dict(state), ConfigError);
}

TEST(NAdam, RefusesOptionsOutOfRange) {
  EXPECT_NO_THROW(NAdamOptions{}.check());
  for (const NAdamOptions& bad :
       {NAdamOptions{.lr = -1}, NAdamOptions{.betas = {0.9, 1.0}}, NAdamOptions{.momentum_decay = -1}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
}

TEST(NadamRule, FollowsItsDefinition) {
  const NadamRule rule{.multiplier = 2,
                       .weight_decay = 0.01,
                       .shrink = 0.875,
                       .new_share = 0.1,
                       .beta2 = 0.99,
                       .square_correction = 0.5,
                       .gradient_step = 0.1,
                       .average_step = 0.2,
                       .eps = 1e-3};
  testing::expect_definition(rule, 2, [&](testing::One& e) {
    const long double g = e.g * rule.multiplier + e.p * rule.weight_decay;
    e.s[0] += rule.new_share * (g - e.s[0]);
    e.s[1] = rule.beta2 * e.s[1] + (1 - rule.beta2) * g * g;
    const long double root = std::sqrt(e.s[1] / rule.square_correction) + rule.eps;
    e.p = e.p * rule.shrink - (rule.gradient_step * g + rule.average_step * e.s[0]) / root;
  });
}

TEST(NadamRule, IsTheSameOnDevices) {
  const NadamRule rule{.multiplier = 1,
                       .weight_decay = 0.01,
                       .shrink = 0.99,
                       .new_share = 0.1,
                       .beta2 = 0.999,
                       .square_correction = 0.5,
                       .gradient_step = 0.01,
                       .average_step = 0.02,
                       .eps = 1e-2};
  testing::expect_device_follows(rule, 2);
}

}  // namespace
}  // namespace lockstep::optim
