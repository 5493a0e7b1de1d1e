#include "lockstep/parallel/step_guard.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

TEST(StepGuard, FingerprintsTellWeightsApart) {
  const Tensor weight = at::arange(12, at::kFloat).view({3, 4}), half = at::ones({5}, at::kBFloat16);
  const StepGuard guard({{"weight", weight}, {"half", half}, {"empty", at::ones({0})}});
  const double before = guard.fingerprint();
  EXPECT_EQ(guard.fingerprint(), before);
  EXPECT_EQ(before, std::floor(before));
  EXPECT_LT(before, 1099511627776.0);
  weight.data()[2][3] = 0;
  EXPECT_NE(guard.fingerprint(), before);
  weight.data()[2][3] = 11;
  EXPECT_EQ(guard.fingerprint(), before);
  half.mul_(2);
  EXPECT_NE(guard.fingerprint(), before);
}

TEST(StepGuard, ANumberIsRepeatedOnceWeightsAreUpdated) {
  const Tensor weight = at::ones({4});
  StepGuard guard({{"weight", weight}});
  EXPECT_FALSE(guard.repeats(0));
  guard.end_step(0);
  EXPECT_FALSE(guard.repeats(0)) << "several losses of one step";
  EXPECT_FALSE(guard.repeats(1));
  weight.data().mul_(2);  // as libtorch's SGD, which leaves no trace in the version
  EXPECT_TRUE(guard.repeats(0));
  EXPECT_FALSE(guard.repeats(1));
}

TEST(StepGuard, DrawsAreSeen) {
  const torch::nn::Linear net(2, 2);
  LaneGenerators generators(*net);
  generators.seed(3);
  const DrawCheck active(true, generators), idle(false, generators);
  active.check(7);
  at::rand({2});
  idle.check(7);
  EXPECT_THAT(refusal([&] { active.check(7); }), HasSubstr("step 7 was run before the last update, too"));
}

TEST(StepGuard, LossesThatAreNoneAreNamed) {
  const Tensor weight = at::ones({3}).requires_grad_();
  check_loss(weight.sum(), "step 3, lane 2");
  check_loss(weight.sum().view({1}), "step 3, lane 2");
  const auto mistake = [](const Tensor& loss) { return refusal([&] { check_loss(loss, "step 3, lane 2"); }); };
  EXPECT_THAT(mistake({}), HasSubstr("step 3, lane 2: the loss is an undefined tensor"));
  EXPECT_THAT(mistake(weight * 2), HasSubstr("step 3, lane 2: the loss is Float [3]; it returns the mean loss"));
  EXPECT_THAT(mistake(at::ones({}, at::kLong)), HasSubstr("the loss is Long []"));
  EXPECT_THAT(mistake(weight.detach().sum()), HasSubstr("the loss has no graph"));
  EXPECT_THAT(mistake(at::ones({3}, at::kMeta).requires_grad_().sum()), HasSubstr("the loss is on meta"));
}

}  // namespace
}  // namespace lockstep::parallel
