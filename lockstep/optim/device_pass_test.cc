#include "lockstep/optim/device_pass.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

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
    average = draw();
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
       3}};
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

}  // namespace
}  // namespace lockstep::optim
