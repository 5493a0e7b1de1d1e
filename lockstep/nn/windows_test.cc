#include "lockstep/nn/windows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::nn {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;
constexpr WindowShape kShapes[] = {{3, 3, 1, 1}, {3, 3, 2, 1}, {1, 1, 1, 0}, {1, 1, 2, 0}, {2, 3, 3, 0}, {7, 7, 2, 3}};

// libtorch's im2col, whose rows are [C, k, k'], with channels innermost.
at::Tensor libtorchs(const at::Tensor& x, const WindowShape& s) {
  const at::Tensor columns = at::im2col(x, {s.height, s.width}, {1, 1}, {s.padding, s.padding}, {s.stride, s.stride});
  const int64_t taps = s.height * s.width;
  return columns.view({x.size(0), x.size(1), taps, -1}).permute({0, 3, 2, 1}).reshape({-1, taps * x.size(1)});
}

TEST(Windows, AreLibtorchs) {
  at::manual_seed(1);
  for (const WindowShape& shape : kShapes) {
    for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
      const at::Tensor x = at::randn({2, 20, 7, 9}).to(dtype).contiguous(kChannelsLast);
      EXPECT_TRUE(at::equal(windows_of(x, shape), libtorchs(x.to(at::kFloat), shape).to(dtype)));
    }
  }
}

// <windows(x), w> = <x, sum(w)>, on small whole numbers, which are exact.
TEST(Windows, SumIsTheAdjoint) {
  at::manual_seed(2);
  for (const WindowShape& shape : kShapes) {
    const at::Tensor x = at::randint(-3, 4, {2, 20, 7, 9}).to(at::kBFloat16).contiguous(kChannelsLast);
    const at::Tensor windows = windows_of(x, shape), w = at::randint(-3, 4, windows.sizes()).to(at::kBFloat16);
    const at::Tensor sum = sum_of_windows(w, x.sizes(), shape);
    EXPECT_TRUE(sum.is_contiguous(kChannelsLast));
    const auto dot = [](const at::Tensor& a, const at::Tensor& b) {
      return (a.to(at::kDouble) * b.to(at::kDouble)).sum().item().toDouble();
    };
    EXPECT_EQ(dot(windows, w), dot(x, sum));
  }
}

TEST(Windows, DepthwiseInputGradientIsLibtorchs) {
  at::manual_seed(3);
  for (const WindowShape& shape : kShapes) {
    if (shape.height != shape.width) continue;
    const at::Tensor x = at::randn({2, 20, 9, 8}).requires_grad_(),
                     weight = at::randn({20, 1, shape.height, shape.width});
    const at::Tensor y = at::conv2d(x, weight, {}, shape.stride, shape.padding, 1, 20);
    const at::Tensor dy = at::randn_like(y).to(at::kBFloat16).contiguous(kChannelsLast);
    y.backward(dy.to(at::kFloat));
    const at::Tensor dx = depthwise_input_gradient(dy, weight, x.sizes(), shape);
    EXPECT_TRUE(at::allclose(dx.to(at::kFloat), x.grad(), 0.01, 0.01));
  }
}

}  // namespace
}  // namespace lockstep::nn
