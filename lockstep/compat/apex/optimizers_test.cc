#include "lockstep/compat/apex/optimizers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include "lockstep/base/error.h"

namespace lockstep::apex::optimizers {
namespace {

using at::Tensor;

Tensor weight(at::ScalarType type = at::kFloat) { return at::ones({8}, type).requires_grad_(); }

void step(torch::optim::Optimizer& optimizer, const Tensor& parameter) {
  for (int number = 1; number < 4; ++number) {
    parameter.mutable_grad() = at::arange(8, parameter.options()).detach() * 0.1 * number;
    optimizer.step();
  }
}

TEST(ApexOptimizers, FusedAdamIsEitherAdam) {
  const Tensor ours = weight(), theirs = weight(), ours_w = weight(), theirs_w = weight();
  torch::optim::Adam adam({theirs}, torch::optim::AdamOptions(0.1).weight_decay(0.2).betas({0.8, 0.9}));
  torch::optim::AdamW adamw({theirs_w}, torch::optim::AdamWOptions(0.1).weight_decay(0.2));
  step(*FusedAdam({ours}, {.lr = 0.1, .betas = {0.8, 0.9}, .adam_w_mode = false, .weight_decay = 0.2}), ours);
  step(*FusedAdam({ours_w}, {.lr = 0.1, .weight_decay = 0.2}), ours_w);
  step(adam, theirs);
  step(adamw, theirs_w);
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(ours_w, theirs_w, 1e-5, 1e-6));
  EXPECT_THROW(FusedAdam({weight()}, {.lr = -1}), ConfigError);
}

TEST(ApexOptimizers, GroupsHaveOptionsOfTheirOwn) {
  const Tensor first = weight(), second = weight();
  const auto adam = FusedAdam({{{first}, {}}, {{second}, {{"lr", 0.5}}}}, {.lr = 0.25});
  EXPECT_EQ(adam->lr(), 0.25);
  EXPECT_EQ(adam->param_groups()[1].options().get_lr(), 0.5);
}

TEST(ApexOptimizers, TheOthersAreLockstepsByTheirNames) {
  EXPECT_EQ(FusedSGD({weight()}, {.lr = 0.1, .momentum = 0.9, .nesterov = true}).name(), "sgd");
  EXPECT_EQ(FusedAdagrad({weight()}, {.lr = 0.1, .eps = 1e-8}).name(), "adagrad");
  EXPECT_EQ(FusedLAMB({weight()}, {.max_grad_norm = 0.5, .use_nvlamb = true}).name(), "lamb");
  EXPECT_EQ(FusedNovoGrad({weight()}, {.betas = {0.95, 0.98}, .init_zero = true}).name(), "novograd");
}

TEST(ApexOptimizers, MastersOf16BitParameters) {
  const Tensor narrow = weight(at::kBFloat16), other = weight(at::kHalf);
  const auto adam = FusedAdam({narrow}, {.lr = 1e-4, .master_weights = true});
  const auto lamb = FusedMixedPrecisionLamb({other}, {.lr = 1e-4});
  step(*adam, narrow);
  step(*lamb, other);
  for (const auto* optimizer : {adam.get(), lamb.get()}) {
    ASSERT_EQ(optimizer->masters().size(), 1u);
    EXPECT_EQ(optimizer->masters()[0].scalar_type(), at::kFloat);
    EXPECT_FALSE(at::equal(optimizer->masters()[0], at::ones({8}))) << "smaller steps than 16 bits can hold";
  }
}

}  // namespace
}  // namespace lockstep::apex::optimizers
