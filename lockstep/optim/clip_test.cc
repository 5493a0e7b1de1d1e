#include "lockstep/optim/clip.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/optim/held_gradient.h"

namespace lockstep::optim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(ClipFactor, NeverGrowsGradients) {
  EXPECT_EQ(clip_factor(0, 1), 1);
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_DOUBLE_EQ(clip_factor(4, 1), 1 / 4.000001);
  EXPECT_DOUBLE_EQ(clip_factor(1, 1), 1 / 1.000001);
  EXPECT_EQ(clip_factor(3, 0), 0);
  EXPECT_EQ(clip_factor(3, kInfinity), 1);
}

TEST(ClipFactor, ShowsWhatIsNotFinite) {
  EXPECT_EQ(clip_factor(kInfinity, 1), 0);
  EXPECT_TRUE(std::isnan(clip_factor(std::nan(""), 1)));
}

std::vector<at::Tensor> parameters(double a, double b) {
  std::vector<at::Tensor> p = {at::zeros({1}).requires_grad_(), at::zeros({1}).requires_grad_(), at::zeros({1})};
  p[0].mutable_grad() = at::full({1}, a);
  p[1].mutable_grad() = at::full({1}, b);
  return p;
}

TEST(ClipGradNorm, TakesTheNormOfAll) {
  const auto p = parameters(3, 4);
  EXPECT_DOUBLE_EQ(clip_grad_norm(p, 1), 5);
  EXPECT_NEAR(p[0].grad().item().toDouble(), 0.6, 1e-6);
  EXPECT_NEAR(p[1].grad().item().toDouble(), 0.8, 1e-6);
}

TEST(ClipGradNorm, LeavesSmallOnesAlone) {
  const auto p = parameters(3, 4);
  EXPECT_DOUBLE_EQ(clip_grad_norm(p, 10), 5);
  EXPECT_EQ(p[0].grad().item().toDouble(), 3);
  EXPECT_EQ(clip_grad_norm(std::vector<at::Tensor>{at::zeros({1})}, 1), 0);
}

TEST(ClipGradNorm, RefusesANegativeNorm) {
  const auto p = parameters(3, 4);
  EXPECT_THROW(clip_grad_norm(p, -1), ConfigError);
  EXPECT_THROW(clip_grad_norm(p, std::nan("")), ConfigError);
}

// As at O2: libtorch's optimizer steps masters, whose gradients are held, and BatchNorm's own fp32 weights.
TEST(ClipGradNorm, TakesReadableHeldOnesWithOthers) {
  const auto p = parameters(3, 4);
  hold(p[1].grad(), {.why = "is a master's", .readable = true});
  EXPECT_DOUBLE_EQ(clip_grad_norm(p, 1), 5);
  EXPECT_NE(hold_of(p[1].grad()), nullptr);
  EXPECT_EQ(hold_of(p[0].grad()), nullptr);
  release(p[1].grad());
  EXPECT_NEAR(p[0].grad().item().toDouble(), 0.6, 1e-6);
  EXPECT_NEAR(p[1].grad().item().toDouble(), 0.8, 1e-6);
}

TEST(ClipGradNorm, CountsAParameterOnce) {
  const at::Tensor parameter = at::ones({4}).requires_grad_();
  parameter.mutable_grad() = at::full({4}, 3.0f);
  const std::vector<at::Tensor> twice = {parameter, parameter};
  EXPECT_DOUBLE_EQ(clip_grad_norm(twice, 100), 6);
}

// Embeddings of one sample: backward leaves both gradients in one memory.
TEST(ClipGradNorm, ScalesMemoryThatTwoShareOnce) {
  const at::Tensor a = at::zeros({3}).requires_grad_(true), b = at::zeros({3}).requires_grad_(true);
  ((a.unsqueeze(0) + b.unsqueeze(0)) * at::full({1, 3}, 2)).sum().backward();
  ASSERT_EQ(a.grad().const_data_ptr(), b.grad().const_data_ptr()) << "libtorch has mended it";
  EXPECT_NEAR(clip_grad_norm(std::vector{a, b}, 1), std::sqrt(24), 1e-6);
  for (const at::Tensor& each : {a, b}) EXPECT_TRUE(at::allclose(each.grad(), at::full({3}, 2 / std::sqrt(24))));
}

// Of a concatenation: two gradients are slices of a third one's memory, in whatever order they are given.
TEST(ClipGradNorm, ScalesSlicesOfAnothersMemoryOnce) {
  for (const bool whole_first : {true, false}) {
    const auto leaf = [](int64_t size) { return at::zeros({size}).requires_grad_(true); };
    const at::Tensor a = leaf(3), b = leaf(3), c = leaf(6);
    ((at::cat({a, b}).unsqueeze(0) + c.unsqueeze(0)) * at::ones({1, 6})).sum().backward();
    const std::vector<at::Tensor> all = whole_first ? std::vector{c, a, b} : std::vector{a, b, c};
    EXPECT_NEAR(clip_grad_norm(all, 1), std::sqrt(12), 1e-6);
    for (const at::Tensor& each : all) {
      EXPECT_TRUE(at::allclose(each.grad(), at::full_like(each, 1 / std::sqrt(12)))) << whole_first;
    }
  }
}

}  // namespace
}  // namespace lockstep::optim
