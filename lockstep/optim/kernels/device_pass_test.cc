#include "lockstep/optim/kernels/device_pass.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/optim/kernels/layer_kernels.h"

namespace lockstep::optim {
namespace {

using at::Tensor;

struct Tensors {
  Tensor parameter, gradient, a, b, c, average;
  explicit Tensors(at::ScalarType type) {
    at::manual_seed(5);
    const auto draw = [&] { return at::randn({1000}).to(type); };
    parameter = draw();
    gradient = draw();
    a = draw().abs();
    b = draw().abs();
    c = draw().abs();
    average = draw().to(type == at::kDouble ? at::kDouble : at::kFloat);
  }
  Operands operands(int states) const {
    Operands of{.parameter = parameter, .gradient = gradient, .state = {}, .average = &average};
    const Tensor* all[] = {&a, &b, &c};
    for (int k = 0; k < states; ++k) of.state[static_cast<size_t>(k)] = all[k];
    return of;
  }
};

// Libtorch's kernels run on the CPU as well: there the two ways are compared.
TEST(DevicePass, FollowsTheCpusPass) {
  const std::pair<Rule, int> rules[] = {
      {SgdRule{.multiplier = 0.5,
               .lr = 0.1,
               .weight_decay = 0,
               .momentum = 0,
               .undamped = 1,
               .nesterov = false,
               .first = false},
       0},
      {SgdRule{.multiplier = 0.5,
               .lr = 0.1,
               .weight_decay = 0.01,
               .momentum = 0.9,
               .undamped = 0.8,
               .nesterov = true,
               .first = false},
       1},
      {SgdRule{.multiplier = 1,
               .lr = 0.1,
               .weight_decay = 0.01,
               .momentum = 0.9,
               .undamped = 1,
               .nesterov = false,
               .first = true},
       1},
      {SgdRule{.multiplier = 1,
               .lr = 0.1,
               .weight_decay = 0,
               .momentum = 0.9,
               .undamped = 0.1,
               .nesterov = false,
               .first = false,
               .shrink = 0.99},
       1},
      {AdagradRule{.multiplier = 2, .lr = 0.1, .weight_decay = 0.01, .eps = 1e-10}, 1},
      {AdamRule{.multiplier = 1,
                .weight_decay = 0.01,
                .shrink = 1,
                .new_share = 0.1,
                .beta2 = 0.999,
                .step_size = 0.01,
                .root_correction = 0.5,
                .eps = 1e-8},
       2},
      {AdamRule{.multiplier = 1,
                .weight_decay = 0,
                .shrink = 0.99,
                .new_share = 0.1,
                .beta2 = 0.999,
                .step_size = 0.01,
                .root_correction = 0.5,
                .eps = 1e-8},
       3},
      {RmspropRule{
           .multiplier = 1, .lr = 0.1, .weight_decay = 0, .alpha = 0.9, .eps = 0.1, .momentum = 0, .centered = false},
       1},
      {RmspropRule{
           .multiplier = 1, .lr = 0.1, .weight_decay = 0.1, .alpha = 1, .eps = 4, .momentum = 0.5, .centered = false},
       2},
      {NadamRule{.multiplier = 1,
                 .weight_decay = 0.01,
                 .shrink = 0.99,
                 .new_share = 0.1,
                 .beta2 = 0.999,
                 .square_correction = 0.5,
                 .gradient_step = 0.01,
                 .average_step = 0.02,
                 .eps = 1e-2},
       2}};
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const auto& [rule, states] : rules) {
      for (const Extras& extras : {Extras{.average_share = 0.1}, Extras{.clip = 0.3, .average_share = 1}}) {
        const Tensors here(type), there(type);
        step_parameter(rule, here.operands(states), extras);
        step_on_device(rule, there.operands(states), extras);
        const double tolerance = type == at::kBFloat16 ? 1e-2 : 1e-5;
        EXPECT_TRUE(at::allclose(here.parameter, there.parameter, tolerance, tolerance)) << rule.index() << type;
        EXPECT_TRUE(at::allclose(here.a, there.a, tolerance, tolerance)) << rule.index() << type;
        EXPECT_TRUE(at::allclose(here.b, there.b, tolerance, tolerance)) << rule.index() << type;
        EXPECT_TRUE(at::allclose(here.c, there.c, tolerance, tolerance)) << rule.index() << type;
        EXPECT_TRUE(at::allclose(here.average, there.average, tolerance, tolerance)) << rule.index() << type;
      }
    }
  }
}

// RMSprop's variance must not come out below 0, which random state gives.
TEST(DevicePass, FollowsTheCpusCenteredRmsprop) {
  const RmspropRule rule{
      .multiplier = 1, .lr = 0.1, .weight_decay = 0, .alpha = 0.9, .eps = 0.1, .momentum = 0.5, .centered = true};
  const Tensors here(at::kFloat), there(at::kFloat);
  for (const Tensors* t : {&here, &there}) {
    t->a.add_(40);
    step_parameter(rule, t->operands(3));
  }
  step_parameter(rule, here.operands(3));
  step_on_device(rule, there.operands(3));
  EXPECT_TRUE(at::allclose(here.parameter, there.parameter, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(here.c, there.c, 1e-5, 1e-5));
}

TEST(DevicePass, FollowsTheCpusLamb) {
  const LambRule rule{.multiplier = 0.5,
                      .weight_decay = 0.01,
                      .decoupled_decay = 0.02,
                      .beta1 = 0.9,
                      .new_share = 0.1,
                      .beta2 = 0.99,
                      .correction = 0.5,
                      .root_correction = 0.7,
                      .eps = 1e-2};
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Tensors here(type), there(type);
    const Extras extras{.clip = 0.3, .average_share = 0.25};
    const SquareSums ours = step_lamb_moments(rule, here.operands(2), extras);
    const SquareSums theirs = lamb_moments_on_device(rule, there.operands(2), extras);
    EXPECT_NEAR(ours.weight / theirs.weight, 1, 1e-6);
    EXPECT_NEAR(ours.other / theirs.other, 1, 1e-5);
    step_lamb(rule, 0.1, here.operands(2), extras);
    lamb_step_on_device(rule, 0.1, there.operands(2), extras);
    EXPECT_TRUE(at::allclose(here.parameter, there.parameter, 1e-5, 1e-5));
    EXPECT_TRUE(at::allclose(here.a, there.a, 1e-5, 1e-5));
    EXPECT_TRUE(at::allclose(here.b, there.b, 1e-5, 1e-5));
    EXPECT_TRUE(at::allclose(here.average, there.average, 1e-5, 1e-5));
    const SquareSums sums = square_sums(here.operands(0), 2, extras);
    EXPECT_NEAR(sums.other / square_sums_on_device(here.operands(0), 2, extras).other, 1, 1e-6);
  }
}

TEST(DevicePass, RoundsAMaster) {
  const Tensors t(at::kFloat);
  const Tensor gradient = t.gradient.to(at::kBFloat16), rounded = at::empty({1000}, at::kBFloat16);
  const AdagradRule rule{.multiplier = 2, .lr = 0.1, .weight_decay = 0.01, .eps = 1e-10};
  step_on_device(rule, {t.parameter, gradient, {&t.a}, &t.average, &rounded});
  EXPECT_TRUE(at::equal(rounded, t.parameter.to(at::kBFloat16)));
}

}  // namespace
}  // namespace lockstep::optim
