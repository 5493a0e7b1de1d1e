#include "lockstep/parallel/cast_hooks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

namespace lockstep::parallel {
namespace {

using at::Tensor;

struct CastHooksTest : testing::Test {
  Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_();
  std::map<size_t, Tensor> taken;
  std::shared_ptr<const TakeUncast> take = std::make_shared<TakeUncast>([this](size_t number, const Tensor& gradient) {
    taken[number] = gradient;
    return number == 0;
  });
};

TEST_F(CastHooksTest, WhatIsTakenIsNotAccumulated) {
  const Tensor loss = ((a.to(at::kBFloat16) + b.to(at::kBFloat16)) * 3).sum();
  hook_casts(loss, {a, b}, take);
  loss.backward();
  EXPECT_TRUE(at::equal(taken.at(0), at::full({2}, 3, at::kBFloat16)));
  EXPECT_TRUE(at::equal(taken.at(1), at::full({2}, 3, at::kBFloat16)));
  EXPECT_FALSE(a.grad().defined());
  EXPECT_TRUE(at::equal(b.grad(), at::full({2}, 3.0f))) << "not taken";
}

TEST_F(CastHooksTest, NobodyTakesAfterTheTakerHasGone) {
  const Tensor loss = (a.to(at::kHalf) * 3).sum();
  hook_casts(loss, {a}, take);
  take.reset();
  loss.backward();
  EXPECT_TRUE(at::equal(a.grad(), at::full({2}, 3.0f)));
}

}  // namespace
}  // namespace lockstep::parallel
