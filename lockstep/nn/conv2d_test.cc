#include "lockstep/nn/conv2d.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "lockstep/nn/testing/second_derivatives.h"

namespace lockstep::nn {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

struct Trial {
  at::Tensor y, dx, dweight;
};

template <typename Conv>
Trial run(Conv conv, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& dy) {
  const at::Tensor a = x.detach().requires_grad_(), b = weight.detach().requires_grad_();
  const at::Tensor y = conv(a, b);
  y.backward(dy.to(y.scalar_type()));
  return {y.detach(), a.grad(), b.grad()};
}

double apart(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kFloat) - b).norm() / b.norm()).item().toDouble();
}

// Against libtorch in fp32 on the same rounded numbers; a result is rounded once or twice.
void expect_definition(const std::vector<int64_t>& sizes, int64_t out, int64_t kernel, int64_t stride,
                       at::ScalarType dtype, int64_t groups = 1) {
  const int64_t padding = kernel / 2;
  const at::Tensor x = at::randn(sizes).to(dtype).contiguous(kChannelsLast);
  const at::Tensor weight =
      (at::randn({out, sizes[1] / groups, kernel, kernel}) / 30).to(dtype).contiguous(kChannelsLast);
  const at::Tensor wide = weight.to(at::kFloat);
  const auto plain = [&](const at::Tensor& a, const at::Tensor& b) {
    return at::conv2d(a, b, {}, stride, padding, 1, groups);
  };
  const at::Tensor dy = at::randn_like(plain(x.to(at::kFloat), wide)).to(dtype);
  const Trial theirs = run(plain, x.to(at::kFloat), wide, dy);
  const Trial ours = run(
      [&](const at::Tensor& a, const at::Tensor& b) { return conv2d(a, b, stride, padding, groups); }, x, weight, dy);
  SCOPED_TRACE(testing::Message() << x.sizes() << " " << weight.sizes() << " " << dtype);
  EXPECT_EQ(ours.y.scalar_type(), dtype);
  EXPECT_TRUE(ours.y.is_contiguous(kChannelsLast));
  EXPECT_TRUE(ours.dx.is_contiguous(kChannelsLast));
  EXPECT_LE(apart(ours.y, theirs.y), 4e-3);
  EXPECT_LE(apart(ours.dx, theirs.dx), 6e-3);
  EXPECT_LE(apart(ours.dweight, theirs.dweight), 4e-3);
}

// Deep enough for matrices each way, for the weight's gradient alone, and not at all.
TEST(Conv2d, IsItsDefinition) {
  at::manual_seed(1);
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    expect_definition({2, 256, 5, 7}, 256, 3, 1, dtype);
    expect_definition({2, 256, 8, 9}, 300, 3, 2, dtype);
    expect_definition({3, 300, 4, 4}, 256, 1, 2, dtype);
    expect_definition({8, 256, 8, 9}, 256, 3, 1, dtype);
  }
  expect_definition({2, 256, 20, 20}, 256, 3, 1, at::kBFloat16);
  expect_definition({2, 20, 9, 9}, 24, 3, 1, at::kBFloat16);
  for (const int64_t stride : {1, 2}) expect_definition({2, 24, 9, 12}, 24, 3, stride, at::kBFloat16, 24);
}

TEST(Conv2d, GradientsOfDeepWeightsAreChannelsLast) {
  const at::Tensor x = at::randn({2, 256, 4, 4}).to(at::kBFloat16).contiguous(kChannelsLast);
  const at::Tensor weight = at::randn({256, 256, 3, 3}).contiguous(kChannelsLast).requires_grad_();
  conv2d(x, weight.to(at::kBFloat16), 1, 1).sum().backward();
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(weight.grad().strides(), weight.strides());
}

TEST(Conv2d, FollowsAutocast) {
  const at::Tensor x = at::randn({2, 256, 4, 4}).contiguous(kChannelsLast);
  const at::Tensor weight = at::randn({256, 256, 3, 3}).contiguous(kChannelsLast);
  EXPECT_EQ(conv2d(x, weight, 1, 1).scalar_type(), at::kFloat);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const at::Tensor y = conv2d(x, weight, 1, 1);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(y, conv2d(x.to(at::kBFloat16), weight.to(at::kBFloat16), 1, 1)));
}

// Of both ways of a deep layer, of a depthwise one with a stride, and of what goes to libtorch.
TEST(Conv2d, SecondDerivativesAreLibtorchs) {
  at::manual_seed(3);
  struct Case {
    std::vector<int64_t> sizes;
    int64_t out, stride, groups;
  };
  for (const Case& c : {Case{{2, 256, 4, 4}, 256, 1, 1},
                        {{2, 256, 20, 10}, 256, 1, 1},
                        {{2, 24, 9, 12}, 24, 2, 24},
                        {{2, 20, 9, 9}, 24, 1, 1}}) {
    const at::Tensor x = at::randn(c.sizes).to(at::kBFloat16).contiguous(kChannelsLast);
    const at::Tensor weight =
        (at::randn({c.out, c.sizes[1] / c.groups, 3, 3}) / 30).to(at::kBFloat16).contiguous(kChannelsLast);
    const auto ours = testing_support::penalty_gradients(
        [&](const auto& in) { return conv2d(in[0], in[1], c.stride, 1, c.groups); }, {x, weight});
    const auto theirs = testing_support::penalty_gradients(
        [&](const auto& in) { return at::conv2d(in[0], in[1], {}, c.stride, 1, 1, c.groups); }, {x, weight});
    SCOPED_TRACE(testing::Message() << x.sizes());
    testing_support::expect_near(ours, theirs, 1e-2);
  }
}

// What conv2d() does not take goes to libtorch as it is.
TEST(Conv2dModule, IsLibtorchs) {
  at::manual_seed(2);
  using Options = torch::nn::Conv2dOptions;
  const at::Tensor x = at::randn({2, 8, 9, 9});
  for (const Options& options :
       {Options(8, 12, 3).bias(false).padding(1).stride(2), Options(8, 12, 3),
        Options(8, 12, 3).bias(false).dilation(2), Options(8, 8, 3).bias(false).groups(8),
        Options(8, 12, {3, 1}).bias(false).padding({1, 0}), Options(8, 12, 3).bias(false).padding(torch::kSame),
        Options(8, 12, 3).bias(false).padding_mode(torch::kCircular)}) {
    Conv2d ours(options);
    torch::nn::Conv2d theirs(options);
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < ours->parameters().size(); ++i) theirs->parameters()[i].copy_(ours->parameters()[i]);
    EXPECT_TRUE(at::equal(ours->forward(x), theirs->forward(x)));
    EXPECT_TRUE(at::equal(ours->forward(x[0]), theirs->forward(x[0])));
  }
}

}  // namespace
}  // namespace lockstep::nn
