#include "lockstep/parallel/gradients/gradient_hooks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>

#include <memory>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::ElementsAre;

TEST(GradientHooks, ALaterOneTakesOver) {
  const Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_(), frozen = at::ones({2});
  const std::vector<NamedParameter> parameters = {{"a", a}, {"b", b}, {"frozen", frozen}};
  std::vector<size_t> first, second;
  auto hooks = std::make_unique<GradientHooks>(parameters, [&](size_t index) { first.push_back(index); });
  a.sum().backward();
  EXPECT_THAT(first, ElementsAre(0));
  auto later = std::make_unique<GradientHooks>(parameters, [&](size_t index) { second.push_back(index); });
  hooks = nullptr;
  frozen.requires_grad_();
  b.sum().backward();
  frozen.sum().backward();
  EXPECT_THAT(second, ElementsAre(1, 2)) << "those of the later one stay";
  later = nullptr;
  a.sum().backward();
  EXPECT_EQ(first.size() + second.size(), 3u) << "none are left";
}

TEST(GradientHooks, AFrozenParameterKeepsTheHookOfItsNetwork) {
  const Tensor a = at::ones({2}).requires_grad_();
  int own = 0, other = 0;
  const GradientHooks first({{"a", a}}, [&](size_t) { ++own; });
  a.requires_grad_(false);
  const GradientHooks second({{"a", a}}, [&](size_t) { ++other; });
  a.requires_grad_(true);
  a.sum().backward();
  EXPECT_EQ(own, 1);
  EXPECT_EQ(other, 0);
}

TEST(GradientHooks, ThoseOfTheUserAreRefused) {
  struct Own final : torch::autograd::PostAccumulateGradHook {
    void operator()(const torch::autograd::Variable&) override {}
  };
  const Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_();
  torch::autograd::impl::set_post_acc_grad_hooks(b, std::make_unique<Own>());
  EXPECT_THAT(testing_support::refusal([&] {
                GradientHooks({{"a", a}, {"b", b}}, [](size_t) {});
              }),
              testing::HasSubstr("b has a post-accumulate-grad hook of its own"));
  EXPECT_EQ(torch::autograd::impl::post_acc_grad_hooks(a), nullptr) << "nothing is touched";
}

}  // namespace
}  // namespace lockstep::parallel
