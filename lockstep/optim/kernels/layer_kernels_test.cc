#include "lockstep/optim/kernels/layer_kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace lockstep::optim {
namespace {

const LambRule kRule{.multiplier = 0.5,
                     .weight_decay = 0,
                     .decoupled_decay = 0.125,
                     .beta1 = 0.75,
                     .new_share = 0.25,
                     .beta2 = 0.5,
                     .correction = 0.5,
                     .root_correction = 0.25,
                     .eps = 1e-6};

struct Tensors {
  at::Tensor parameter, gradient, average, square;
  explicit Tensors(int64_t size, at::ScalarType type = at::kFloat) {
    at::manual_seed(3);
    const auto draw = [&] { return at::randn({size}).to(type); };
    parameter = draw();
    gradient = draw();
    average = draw();
    square = draw().abs();
  }
  Operands operands() const { return {parameter, gradient, {&average, &square}}; }
};

TEST(LayerKernels, GiveTheSameBitsWithAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    std::vector<SquareSums> sums, updates;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      const Tensors t(200003, type);
      sums.push_back(square_sums(t.operands(), 0.5));
      updates.push_back(step_lamb_moments(kRule, t.operands()));
    }
    for (size_t i : {1, 2}) {
      EXPECT_EQ(sums[i].weight, sums[0].weight);
      EXPECT_EQ(sums[i].other, sums[0].other);
      EXPECT_EQ(updates[i].weight, updates[0].weight);
      EXPECT_EQ(updates[i].other, updates[0].other);
    }
  }
  at::set_num_threads(before);
}

TEST(LayerKernels, AddAsTorchDoes) {
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

// As fp32 weights whose gradient is fp32, to the last bit.
TEST(LayerKernels, TakeAMastersNarrowGradient) {
  const Tensors narrow(20003), wide(20003);
  const at::Tensor gradient = narrow.gradient.to(at::kBFloat16), widened = gradient.to(at::kFloat);
  const at::Tensor rounded = at::empty({20003}, at::kBFloat16), average = narrow.parameter.clone();
  const Operands mastered{narrow.parameter, gradient, {&narrow.average, &narrow.square}, &average, &rounded};
  const Operands plain{wide.parameter, widened, {&wide.average, &wide.square}};
  const SquareSums a = step_lamb_moments(kRule, mastered), b = step_lamb_moments(kRule, plain);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.other, b.other);
  step_lamb(kRule, 0.1, mastered, {.average_share = 1});
  step_lamb(kRule, 0.1, plain);
  EXPECT_TRUE(at::equal(narrow.parameter, wide.parameter));
  EXPECT_TRUE(at::equal(average, wide.parameter));
  EXPECT_TRUE(at::equal(rounded, wide.parameter.to(at::kBFloat16)));
}

}  // namespace
}  // namespace lockstep::optim
