#include "lockstep/nn/batch_norm_passes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::nn {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

void expect_close(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  ASSERT_EQ(a.sizes(), b.sizes());
  const double scale = b.abs().max().item().toDouble();
  EXPECT_LE((a.to(at::kDouble) - b).abs().max().item().toDouble(), tolerance * scale);
}

TEST(BatchNormPasses, KernelsAreForChannelsInnermost) {
  EXPECT_TRUE(has_kernels(at::zeros({2, 3, 4, 4}).contiguous(kChannelsLast)));
  EXPECT_TRUE(has_kernels(at::zeros({2, 3}, at::kBFloat16)));
  EXPECT_FALSE(has_kernels(at::zeros({2, 3, 4, 4})));
  EXPECT_FALSE(has_kernels(at::zeros({2, 3}, at::kDouble)));
  EXPECT_FALSE(has_kernels(at::zeros({0, 3})));
  EXPECT_FALSE(has_kernels(at::zeros({2, 3, 4, 4}).contiguous(kChannelsLast).narrow(1, 0, 2)));
}

// Both forms of each pass, over shapes of one thread's part and of many; channels to be joined and not.
TEST(BatchNormPasses, BothFormsAgree) {
  at::manual_seed(1);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 3, 5, 7}, {16, 24, 32, 32}, {2, 200, 3, 3}}) {
    const at::Tensor x = at::randn(sizes).contiguous(kChannelsLast) + 2, plain = x.to(at::kDouble);
    const Moments a = moments_of(x), b = moments_of(plain);
    EXPECT_EQ(a.count, b.count);
    expect_close(a.mean, b.mean, 1e-6);
    expect_close(a.m2 / static_cast<double>(a.count), b.m2 / static_cast<double>(b.count), 1e-6);

    const at::Tensor affine = at::randn({3, sizes[1]}, at::kDouble), line = at::randn({2, sizes[1]}, at::kDouble);
    expect_close(normalised(x, x, affine, Activation::kRelu6), normalised(plain, plain, affine, Activation::kRelu6),
                 1e-5);
    const at::Tensor dy = at::randn_like(x);
    const BackwardInputs in{dy, x, {}, affine, Activation::kRelu};
    const BackwardInputs wide{dy.to(at::kDouble), plain, {}, affine, Activation::kRelu};
    at::Tensor masked, wide_masked;
    const double rows = static_cast<double>(a.count);
    expect_close(gradient_sums(in, &masked) / rows, gradient_sums(wide, &wide_masked) / rows, 1e-5);
    expect_close(masked, wide_masked, 0);
    expect_close(input_gradient(in, line), input_gradient(wide, line), 1e-5);
  }
}

TEST(BatchNormPasses, NoValuesHaveMomentsOfNone) {
  const Moments none = moments_of(at::zeros({0, 5, 4, 4}));
  EXPECT_EQ(none.count, 0);
  EXPECT_TRUE(at::equal(none.mean, at::zeros({5}, at::kDouble)));
  EXPECT_TRUE(at::equal(none.m2, at::zeros({5}, at::kDouble)));
}

}  // namespace
}  // namespace lockstep::nn
