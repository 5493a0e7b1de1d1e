#include "lockstep/optim/kernels/square_sums.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace lockstep::optim {
namespace {

struct Tensors {
  at::Tensor parameter, gradient;
  explicit Tensors(int64_t size, at::ScalarType type = at::kFloat) {
    at::manual_seed(3);
    const auto draw = [&] { return at::randn({size}).to(type); };
    parameter = draw();
    gradient = draw();
  }
  Operands operands() const { return {parameter, gradient}; }
};

TEST(SquareSums, GiveTheSameBitsWithAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    std::vector<SquareSums> sums;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      const Tensors t(200003, type);
      sums.push_back(square_sums(t.operands(), 0.5));
    }
    for (size_t i : {1, 2}) {
      EXPECT_EQ(sums[i].weight, sums[0].weight);
      EXPECT_EQ(sums[i].other, sums[0].other);
    }
  }
  at::set_num_threads(before);
}

TEST(SquareSums, AddAsTorchDoes) {
  for (const int64_t size : {0, 1, 1024, 4097, 20000}) {
    for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
      const Tensors t(size, type);
      const SquareSums sums = square_sums(t.operands(), 0.5);
      const double weight = t.parameter.to(at::kDouble).square().sum().item<double>();
      const double gradient = t.gradient.to(at::kDouble).mul(0.5).square().sum().item<double>();
      EXPECT_NEAR(sums.weight, weight, 1e-9 * weight) << type << size;
      EXPECT_NEAR(sums.other, gradient, 1e-9 * gradient) << type << size;
    }
  }
}

TEST(SquareSums, ClipTheMultipliedGradient) {
  for (const int64_t size : {0, 1, 15, 64, 1000}) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      const Tensors t(size, type);
      const double gradient = t.gradient.to(at::kDouble).mul(0.5).clamp(-0.25, 0.25).square().sum().item<double>();
      const SquareSums sums = square_sums(t.operands(), 0.5, {.clip = 0.25});
      EXPECT_NEAR(sums.other, gradient, 1e-12 * static_cast<double>(size)) << type << size;
      EXPECT_EQ(gradient_square_sum(t.gradient, 0.5, {.clip = 0.25}), sums.other);
    }
  }
}

}  // namespace
}  // namespace lockstep::optim
