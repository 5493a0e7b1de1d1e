#include "lockstep/amp/autocast.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include <stdexcept>
#include <vector>

namespace lockstep::amp {
namespace {

const Policy kO1 = {.level = OptLevel::kO1};

at::ScalarType product_dtype() { return at::mm(at::ones({2, 2}), at::ones({2, 2})).scalar_type(); }

TEST(AutocastScope, CastsWithinAndNotAfter) {
  {
    const AutocastScope scope(kO1);
    EXPECT_EQ(product_dtype(), at::kBFloat16);
    {
      const AutocastScope inner({.level = OptLevel::kO1, .dtype = at::kHalf});
      EXPECT_EQ(product_dtype(), at::kHalf);
    }
    EXPECT_EQ(product_dtype(), at::kBFloat16);
  }
  EXPECT_EQ(product_dtype(), at::kFloat);
}

TEST(AutocastScope, AnInnerScopesCastsAreItsOwn) {
  const at::Tensor weight = at::ones({2, 2}).requires_grad_();
  const auto dtype = [&weight] { return at::mm(at::ones({2, 2}), weight).scalar_type(); };
  const AutocastScope scope(kO1);
  EXPECT_EQ(dtype(), at::kBFloat16);
  {
    const AutocastScope inner({.level = OptLevel::kO1, .dtype = at::kHalf});
    EXPECT_EQ(dtype(), at::kHalf);
  }
  EXPECT_EQ(dtype(), at::kBFloat16);
}

TEST(AutocastScope, O0ChangesNothing) {
  const AutocastScope scope(Policy{});
  EXPECT_EQ(product_dtype(), at::kFloat);
}

TEST(AutocastScope, AnExceptionPutsEverythingBack) {
  try {
    const AutocastScope scope(kO1);
    throw std::runtime_error("");
  } catch (const std::runtime_error&) {
  }
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_EQ(product_dtype(), at::kFloat);
}

// Whatever the level's dtype is, and libtorch's own.
TEST(CastCacheScope, LanesShareOneCast) {
  const at::Tensor weight = at::randn({4, 4}).requires_grad_(), x = at::randn({3, 4});
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    const Policy policy{.level = OptLevel::kO1, .dtype = dtype};
    std::vector<at::Tensor> outputs;
    const auto cast_of_lane = [&] {
      const AutocastScope scope(policy);
      outputs.push_back(at::mm(x, weight));
      EXPECT_EQ(outputs.back().scalar_type(), dtype);
      return outputs.back().grad_fn()->next_edge(1).function;
    };
    {
      const CastCacheScope step;
      EXPECT_EQ(cast_of_lane(), cast_of_lane()) << dtype;
    }
    EXPECT_NE(cast_of_lane(), cast_of_lane()) << "each step casts anew";
  }
}

// Two lanes under one cache: each backward reaches the fp32 weight, with the gradient that it has alone.
TEST(CastCacheScope, LanesShareOneCastAndGetTheirOwnGradients) {
  const at::Tensor weight = at::randn({4, 4}).requires_grad_();
  const at::Tensor x[] = {at::randn({3, 4}), at::randn({3, 4})};
  const auto gradient = [&](const at::Tensor& input) {
    weight.mutable_grad().reset();
    at::Tensor loss;
    {
      const AutocastScope scope(kO1);
      loss = at::mm(input, weight).sum();
    }
    loss.backward();
    return weight.grad().clone();
  };
  const at::Tensor alone[] = {gradient(x[0]), gradient(x[1])};
  {
    const CastCacheScope step;
    for (int lane = 0; lane < 2; ++lane) EXPECT_TRUE(at::equal(gradient(x[lane]), alone[lane])) << lane;
  }
  // After the step the weight may change, and the next cast sees it.
  {
    const at::NoGradGuard no_grad;
    weight.zero_();
  }
  const AutocastScope scope(kO1);
  EXPECT_EQ(at::mm(x[0], weight).abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace lockstep::amp
