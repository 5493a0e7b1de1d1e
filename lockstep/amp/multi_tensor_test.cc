#include "lockstep/amp/multi_tensor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::amp {
namespace {

using at::Tensor;

// Returns a tensor of several chunks, an empty one, and one in channels_last.
std::vector<Tensor> values(at::ScalarType type) {
  at::manual_seed(5);
  return {at::randn({3, 20001}).to(type), at::randn({0}).to(type),
          at::randn({2, 3, 4, 5}).to(type).contiguous(at::MemoryFormat::ChannelsLast)};
}

TEST(MultiTensor, ScalesBetweenTypesInFp32) {
  for (const auto from : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const auto to : {at::kFloat, at::kHalf, at::kBFloat16}) {
      const auto in = values(from), out = values(to);
      EXPECT_TRUE(multi_tensor_scale(in, out, 0.25));
      for (size_t i = 0; i < in.size(); ++i) {
        EXPECT_TRUE(at::equal(out[i], (in[i].to(at::kFloat) * 0.25).to(to))) << from << ' ' << to << ' ' << i;
      }
    }
  }
}

TEST(MultiTensor, ComputesFp64AsSuch) {
  const Tensor big = at::full({3}, 1e200, at::kDouble), third = at::full({3}, 1.0 / 3, at::kDouble);
  const std::vector<Tensor> out = {at::empty({3}, at::kDouble), at::empty({3}, at::kDouble)};
  EXPECT_TRUE(multi_tensor_scale({big, third}, out, 0.5));
  EXPECT_TRUE(at::equal(out[0], big * 0.5));
  EXPECT_TRUE(at::equal(out[1], third * 0.5));
  EXPECT_TRUE(multi_tensor_axpby(1, {big, third}, 1, {big, third}, out));
  EXPECT_TRUE(at::equal(out[1], third * 2));
}

TEST(MultiTensor, SaysWhetherAllWasFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::nanf("")}) {
    const auto in = values(at::kHalf);
    in[0].view({-1})[40000] = bad;
    EXPECT_FALSE(multi_tensor_scale(in, values(at::kFloat), 1));
    EXPECT_FALSE(multi_tensor_axpby(1, values(at::kHalf), 1, in, values(at::kFloat)));
    EXPECT_FALSE(multi_tensor_axpby(1, in, 1, values(at::kHalf), values(at::kFloat)));
    EXPECT_FALSE(std::isfinite(multi_tensor_l2norm(in).total));
  }
}

TEST(MultiTensor, AddsAndMeasures) {
  const auto x = values(at::kHalf), y = values(at::kFloat), out = values(at::kFloat);
  EXPECT_TRUE(multi_tensor_axpby(2, x, -0.5, y, out));
  double sum = 0;
  const Norms norms = multi_tensor_l2norm(x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_TRUE(at::equal(out[i], x[i].to(at::kFloat) * 2 + y[i] * -0.5)) << i;
    const double square = x[i].to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(norms.each[i], std::sqrt(square), 1e-9 * (1 + norms.each[i]));
    sum += square;
  }
  EXPECT_NEAR(norms.total, std::sqrt(sum), 1e-9 * norms.total);
}

TEST(MultiTensor, RefusesListsThatDiffer) {
  EXPECT_THROW(multi_tensor_scale({at::ones({2})}, {}, 1), ConfigError);
  EXPECT_THROW(multi_tensor_scale({at::ones({2})}, {at::ones({3})}, 1), ConfigError);
  EXPECT_THROW(multi_tensor_scale({at::ones({2, 2})}, {at::ones({2, 2}).t()}, 1), ConfigError);
}

}  // namespace
}  // namespace lockstep::amp
