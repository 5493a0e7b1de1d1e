#include "lockstep/optim/kernels/device_step.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/optim/kernels/square_sums.h"
#include "lockstep/optim/kernels/step.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::optim {
namespace {

TEST(DeviceStep, RoundsAMaster) {
  at::manual_seed(5);
  const at::Tensor master = at::randn({1000}), gradient = at::randn({1000}).to(at::kBFloat16);
  const at::Tensor average = at::randn({1000}), rounded = at::empty({1000}, at::kBFloat16);
  const SgdRule rule{.multiplier = 2, .lr = 0.1, .weight_decay = 0.01};
  step_on_device(rule, {master, gradient, {}, &average, &rounded});
  EXPECT_TRUE(at::equal(rounded, master.to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(average, master)) << "a share of 1 copies";
}

// libtorch's operations run on the CPU as well: there the two ways are compared.
TEST(DeviceStep, AddsSquaresAsTheCpusPass) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    at::manual_seed(5);
    const at::Tensor parameter = at::randn({1000}).to(type), gradient = at::randn({1000}).to(type);
    const Extras extras{.clip = 0.3};
    const SquareSums sums = square_sums({parameter, gradient}, 2, extras);
    EXPECT_NEAR(sums.weight / device::square_sum(parameter), 1, 1e-6);
    EXPECT_NEAR(sums.other / device::square_sum(device::clipped_gradient(gradient, 2, extras)), 1, 1e-6);
  }
}

}  // namespace
}  // namespace lockstep::optim
