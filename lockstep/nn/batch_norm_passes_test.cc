#include "lockstep/nn/batch_norm_passes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "lockstep/nn/device_passes.h"

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
    EXPECT_TRUE(at::equal(a.count, b.count));
    expect_close(a.mean, b.mean, 1e-6);
    expect_close(a.m2 / a.count, b.m2 / b.count, 1e-6);

    const at::Tensor affine = at::randn({3, sizes[1]}, at::kDouble), line = at::randn({2, sizes[1]}, at::kDouble);
    expect_close(normalised(x, x, affine, Activation::kRelu6), normalised(plain, plain, affine, Activation::kRelu6),
                 1e-5);
    const at::Tensor dy = at::randn_like(x);
    const BackwardInputs in{dy, x, {}, affine, Activation::kRelu};
    const BackwardInputs wide{dy.to(at::kDouble), plain, {}, affine, Activation::kRelu};
    at::Tensor masked, wide_masked;
    const double rows = a.count.item<double>();
    expect_close(gradient_sums(in, &masked) / rows, gradient_sums(wide, &wide_masked) / rows, 1e-5);
    expect_close(masked, wide_masked, 0);
    expect_close(input_gradient(in, line), input_gradient(wide, line), 1e-5);
  }
}

// libtorch's kernels of the device's passes exist on the CPU, too: there they are compared with the exact passes.
TEST(BatchNormPasses, TheDevicesAgree) {
  at::manual_seed(2);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 3, 5, 7}, {16, 24, 32, 32}, {20, 64}, {2, 5, 9}}) {
    const at::Tensor x = at::randn(sizes) + 2, wide = x.to(at::kDouble);
    const Moments a = device::moments_of(x), b = moments_of(wide);
    EXPECT_TRUE(at::equal(a.count, b.count));
    EXPECT_EQ(a.mean.scalar_type(), at::kDouble);
    expect_close(a.mean, b.mean, 1e-6);
    expect_close(a.m2, b.m2, 1e-5);

    const at::Tensor affine = at::randn({3, sizes[1]}, at::kDouble), line = at::randn({2, sizes[1]}, at::kDouble);
    const at::Tensor residual = at::randn_like(x), dy = at::randn_like(x);
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
      const at::Tensor y = device::normalised(x, residual, affine, activation);
      expect_close(y, normalised(wide, residual.to(at::kDouble), affine, activation), 1e-5);
      EXPECT_EQ(y.strides(), x.strides());
      for (const at::Tensor& known : {y, at::Tensor()}) {
        const BackwardInputs in{dy, x, known, affine, activation};
        // Near 0 and 6 the rounded values decide.
        const at::Tensor z = known.defined() ? known : device::normalised(x, {}, affine, Activation::kNone);
        const BackwardInputs exact{dy.to(at::kDouble), wide, z, affine, activation};
        at::Tensor masked, exactly_masked;
        expect_close(device::gradient_sums(in, &masked), gradient_sums(exact, &exactly_masked), 1e-5);
        expect_close(masked, exactly_masked, 0);
        expect_close(device::input_gradient(in, line), input_gradient(exact, line), 1e-5);
      }
    }
  }
}

TEST(BatchNormPasses, TheDevicesKeepSixteenBitsAndTheirLayout) {
  const at::Tensor x = at::randn({4, 24, 6, 6}).to(at::kBFloat16).contiguous(kChannelsLast), wide = x.to(at::kDouble);
  const at::Tensor affine = at::randn({3, 24}, at::kDouble), line = at::randn({2, 24}, at::kDouble);
  const at::Tensor y = device::normalised(x, {}, affine, Activation::kRelu);
  const at::Tensor dx = device::input_gradient({x, x, y, affine, Activation::kRelu}, line);
  for (const at::Tensor& result : {y, dx}) {
    EXPECT_EQ(result.scalar_type(), at::kBFloat16);
    EXPECT_EQ(result.strides(), x.strides());
  }
  expect_close(y, normalised(wide, {}, affine, Activation::kRelu), 1e-2);
  expect_close(dx, input_gradient({wide, wide, y, affine, Activation::kRelu}, line), 1e-2);
}

TEST(BatchNormPasses, TheDevicesTakeNoValues) {
  const at::Tensor none = at::zeros({0, 5, 4, 4}), affine = at::zeros({3, 5}, at::kDouble);
  EXPECT_TRUE(at::equal(device::moments_of(none).count, at::zeros({1}, at::kDouble)));
  EXPECT_EQ(device::normalised(none, {}, affine, Activation::kRelu).sizes(), none.sizes());
  const BackwardInputs in{none, none, none, affine, Activation::kRelu};
  EXPECT_TRUE(at::equal(device::gradient_sums(in, nullptr), at::zeros({2, 5}, at::kDouble)));
  EXPECT_EQ(device::input_gradient(in, affine.narrow(0, 0, 2)).sizes(), none.sizes());
}

TEST(BatchNormPasses, NoValuesHaveMomentsOfNone) {
  const Moments none = moments_of(at::zeros({0, 5, 4, 4}));
  EXPECT_TRUE(at::equal(none.count, at::zeros({1}, at::kDouble)));
  EXPECT_TRUE(at::equal(none.mean, at::zeros({5}, at::kDouble)));
  EXPECT_TRUE(at::equal(none.m2, at::zeros({5}, at::kDouble)));
}

}  // namespace
}  // namespace lockstep::nn
