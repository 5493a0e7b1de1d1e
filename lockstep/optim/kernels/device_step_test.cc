#include "lockstep/optim/kernels/device_step.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

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
    EXPECT_NEAR(sums.other / device::square_sum({gradient}, 2, extras), 1, 1e-5);
    EXPECT_NEAR(2 * sums.other / device::square_sum({gradient, gradient}, 2, extras), 1, 1e-5);
    if (type != at::kBFloat16)
      EXPECT_NEAR(std::sqrt(sums.weight) / device::norms({parameter})[0].item<double>(), 1, 1e-5);
  }
  EXPECT_EQ(device::square_sum({}, 2, {}), 0);
  const at::Tensor large = at::full({10'000}, 1000.0).to(at::kHalf);  // whose norm is more than fp16 has
  EXPECT_NEAR(device::square_sum({at::ones({3}), large}, 1, {}) / 1e10, 1, 1e-4);
}

// Counts the calls of an operator on this thread while it lives.
class Calls {
 public:
  explicit Calls(const char* name) {
    s_name = name;
    s_calls = 0;
    callback_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
          s_calls += std::string(call.name()) == s_name ? 1 : 0;
          return nullptr;
        }));
  }
  ~Calls() { at::removeCallback(callback_); }
  int count() const { return s_calls; }

 private:
  static inline std::string s_name;
  static inline int s_calls = 0;
  at::CallbackHandle callback_;
};

TEST(StepQueue, ParametersOfOneRuleAreSteppedTogether) {
  const std::vector<at::Tensor> parameters(5, at::ones({3})), gradients(5, at::ones({3}));
  std::vector<at::Tensor> weights;
  for (size_t i = 0; i < parameters.size(); ++i) weights.push_back(parameters[i].clone());
  device::StepQueue queue;
  std::string order;
  for (size_t i = 0; i < weights.size(); ++i) {
    const SgdRule rule{.multiplier = 1, .lr = i == 3 ? 0.5 : 0.25};
    queue.add(rule, {weights[i], gradients[i]}, {});
    queue.when_done([&] { order += weights[0][0].item<float>() == 0.75f ? 'd' : 'e'; });
  }
  EXPECT_EQ(weights[0][0].item<float>(), 1) << "the steps wait";
  const Calls calls("aten::_fused_sgd_");
  queue.run();
  EXPECT_EQ(calls.count(), 2);
  EXPECT_EQ(order, "ddddd") << "once all is done";
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_TRUE(at::equal(weights[i], at::full({3}, i == 3 ? 0.5 : 0.75))) << i;
  }
}

}  // namespace
}  // namespace lockstep::optim
