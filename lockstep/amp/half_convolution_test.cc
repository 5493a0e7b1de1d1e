#include "lockstep/amp/half_convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>

namespace lockstep::amp {
namespace {

using at::Tensor;

TEST(HalfConvolution, BothWaysAreThoseOfFp32Rounded) {
  widen_slow_half_convolutions();
  widen_slow_half_convolutions();
  at::manual_seed(4);
  for (const bool transposed : {false, true}) {
    const Tensor x = at::randn({2, 8, 9, 9}).to(at::kHalf), w = (at::randn({8, 8, 3, 3}) / 8).to(at::kHalf);
    const Tensor bias = at::randn({8}).to(at::kHalf);
    const auto run = [&](at::ScalarType type) {
      const auto leaf = [type](const Tensor& value) { return value.to(type, false, /*copy=*/true).requires_grad_(); };
      const Tensor input = leaf(x), weight = leaf(w), b = leaf(bias);
      const Tensor y = at::convolution(input, weight, b, {2, 2}, {1, 1}, {1, 1}, transposed, {0, 0}, 1);
      y.square().sum().backward();
      EXPECT_EQ(y.scalar_type(), type);
      EXPECT_EQ(weight.grad().scalar_type(), type);
      return std::vector<Tensor>{y, input.grad(), weight.grad(), b.grad()};
    };
    const auto half = run(at::kHalf), full = run(at::kFloat);
    for (size_t i = 0; i < half.size(); ++i) {
      EXPECT_TRUE(at::allclose(half[i].to(at::kFloat), full[i], 2e-2, 2e-2)) << i << " transposed " << transposed;
    }
  }
}

TEST(HalfConvolution, SecondDerivativesAreThoseOfFp32Rounded) {
  widen_slow_half_convolutions();
  at::manual_seed(5);
  const Tensor x = at::randn({2, 4, 6, 6}).to(at::kHalf), w = (at::randn({4, 4, 3, 3}) / 8).to(at::kHalf);
  const auto run = [&](at::ScalarType type) {
    const auto leaf = [type](const Tensor& value) { return value.to(type, false, /*copy=*/true).requires_grad_(); };
    const Tensor input = leaf(x), weight = leaf(w);
    const Tensor y = at::conv2d(input, weight, {}, 1, 1).tanh();
    const Tensor slope = torch::autograd::grad({y.sum()}, {input}, {}, true, /*create_graph=*/true)[0];
    return torch::autograd::grad({slope.to(at::kFloat).square().sum()}, {input, weight});
  };
  const auto half = run(at::kHalf), full = run(at::kFloat);
  for (size_t i = 0; i < half.size(); ++i) {
    EXPECT_LE((half[i].to(at::kFloat) - full[i]).norm().item<double>(), 1e-2 * full[i].norm().item<double>()) << i;
  }
}

}  // namespace
}  // namespace lockstep::amp
