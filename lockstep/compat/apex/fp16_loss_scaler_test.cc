#include "lockstep/compat/apex/fp16_loss_scaler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::apex::fp16_utils {
namespace {

TEST(LossScaler, StaysAndScales) {
  LossScaler scaler(128);
  EXPECT_TRUE(scaler.update_scale(true)) << "the step is left out";
  EXPECT_FALSE(scaler.update_scale(false));
  EXPECT_EQ(scaler.loss_scale(), 128);
  const at::Tensor p = at::ones({2}).requires_grad_();
  scaler.backward(p.sum());
  EXPECT_TRUE(at::equal(p.grad(), at::full({2}, 128.0f)));
  EXPECT_THROW(LossScaler(0), ConfigError);
}

// Apex's: halved by each overflow, down to 1; doubled after so many good steps in a row, without a bound.
TEST(DynamicLossScaler, FollowsOverflows) {
  DynamicLossScaler scaler;
  EXPECT_EQ(scaler.loss_scale(), 4294967296);
  for (int step = 0; step < 999; ++step) scaler.update_scale(false);
  EXPECT_EQ(scaler.loss_scale(), 4294967296);
  scaler.update_scale(false);
  EXPECT_EQ(scaler.loss_scale(), 8589934592);
  DynamicLossScaler small({.init_scale = 8, .scale_factor = 4, .scale_window = 2});
  small.update_scale(true);
  EXPECT_EQ(small.loss_scale(), 2);
  small.update_scale(true);
  EXPECT_EQ(small.loss_scale(), 1);
  small.update_scale(false);
  small.update_scale(true);
  small.update_scale(false);
  EXPECT_EQ(small.loss_scale(), 1) << "not in a row";
  small.update_scale(false);
  EXPECT_EQ(small.loss_scale(), 4);
}

TEST(DynamicLossScaler, SeesOverflows) {
  const DynamicLossScaler scaler;
  const at::Tensor p = at::zeros({3}).requires_grad_(), q = at::zeros({1}, at::kHalf).requires_grad_();
  EXPECT_FALSE(scaler.has_overflow({p, q})) << "no gradients";
  q.mutable_grad() = at::full({1}, 60000.0, at::kHalf);
  EXPECT_FALSE(scaler.has_overflow({p, q}));
  p.mutable_grad() = at::tensor({0.0f, std::numeric_limits<float>::quiet_NaN(), 0.0f});
  EXPECT_TRUE(scaler.has_overflow({p, q}));
}

}  // namespace
}  // namespace lockstep::apex::fp16_utils
