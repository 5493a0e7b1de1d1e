#include "lockstep/nn/max_pool_relu.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <vector>

#include "lockstep/nn/testing/second_derivatives.h"

namespace lockstep::nn {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

at::Tensor libtorchs(const at::Tensor& x) { return at::relu(at::max_pool2d(x, {2, 2})); }

struct Both {
  at::Tensor output, gradient;
};

Both run(at::Tensor (*pool)(const at::Tensor&), const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor leaf = x.detach().clone().requires_grad_();
  const at::Tensor output = pool(leaf);
  (output * weight).sum().backward();
  return {output.detach(), leaf.grad()};
}

void expect_libtorchs(const at::Tensor& x) {
  const at::Tensor weight = at::randn(libtorchs(x).sizes()).to(x.scalar_type());
  const Both ours = run(max_pool_relu, x, weight);
  const Both theirs = run(libtorchs, x, weight);
  EXPECT_EQ(ours.output.scalar_type(), x.scalar_type());
  EXPECT_TRUE(at::equal(ours.output, theirs.output)) << x.sizes() << x.dtype();
  EXPECT_TRUE(at::equal(ours.gradient, theirs.gradient)) << x.sizes() << x.dtype();
}

// Channels below, at and above a vector's; odd sides; both memory formats; types with and without a kernel.
TEST(MaxPoolRelu, IsLibtorchsBitForBit) {
  at::manual_seed(1);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 20, 14, 14},
                                              {3, 16, 5, 7},
                                              {1, 33, 2, 2},
                                              {2, 3, 8, 8},
                                              {2, 64, 9, 4},
                                              {70, 17, 28, 28}}) {
      const at::Tensor x = at::randn(sizes).to(dtype);
      expect_libtorchs(x);
      expect_libtorchs(x.contiguous(kChannelsLast));
    }
  }
}

TEST(MaxPoolRelu, KeepsChannelsLast) {
  const at::Tensor x = at::randn({2, 20, 8, 8}).contiguous(kChannelsLast).requires_grad_();
  const at::Tensor output = max_pool_relu(x);
  EXPECT_TRUE(output.is_contiguous(kChannelsLast));
  output.sum().backward();
  EXPECT_TRUE(x.grad().is_contiguous(kChannelsLast));
}

TEST(MaxPoolRelu, TheFirstOfEqualsGetsTheGradient) {
  for (const double value : {2.0, 0.0, -1.0})
    expect_libtorchs(at::full({1, 20, 4, 4}, value).contiguous(kChannelsLast));
}

TEST(MaxPoolRelu, NaNIsNotLost) {
  for (int64_t place = 0; place < 4; ++place) {
    const at::Tensor x = at::randn({1, 20, 2, 2}).contiguous(kChannelsLast);
    x.select(1, 7).view({4})[place] = std::numeric_limits<float>::quiet_NaN();
    const at::Tensor output = max_pool_relu(x);
    EXPECT_TRUE(at::isnan(output.flatten()[7]).item().toBool()) << place;
    EXPECT_EQ(at::isnan(output).sum().item().toInt(), 1);
  }
}

TEST(MaxPoolRelu, TakesAGradientInAnyMemoryFormat) {
  const at::Tensor x = at::randn({2, 20, 8, 8}).contiguous(kChannelsLast);
  const at::Tensor weight = at::randn({2, 20, 4, 4});
  const Both plain = run(max_pool_relu, x, weight);
  const Both last = run(max_pool_relu, x, weight.contiguous(kChannelsLast));
  EXPECT_TRUE(at::equal(plain.gradient, last.gradient));
}

TEST(MaxPoolRelu, SecondDerivativesAreLibtorchs) {
  at::manual_seed(2);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 20, 8, 8}, {3, 16, 5, 7}, {1, 33, 2, 3}}) {
    const at::Tensor x = at::randn(sizes).contiguous(kChannelsLast);
    const auto ours =
        testing_support::penalty_gradients([](const auto& in) { return max_pool_relu(in[0] * in[0] - 1); }, {x});
    const auto theirs =
        testing_support::penalty_gradients([](const auto& in) { return libtorchs(in[0] * in[0] - 1); }, {x});
    testing_support::expect_near(ours, theirs, 1e-6);
  }
}

TEST(MaxPoolRelu, TakesNothingAtAll) { EXPECT_EQ(max_pool_relu(at::zeros({0, 20, 4, 4})).size(0), 0); }

}  // namespace
}  // namespace lockstep::nn
