#include "lockstep/comm/kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/base/testing/instruction_sets.h"
#include "lockstep/comm/reduce.h"

namespace lockstep::comm {
namespace {

using at::Tensor;

TEST(SquareSum, IsExactAndFindsWhatIsNotFinite) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const int64_t count : {0, 1, 7, 16, 33, 4096}) {
      Tensor values = at::randn({count}).to(dtype);
      const double expected = values.to(at::kDouble).square().sum().item<double>();
      EXPECT_NEAR(square_sum(dtype, values.data_ptr(), count), expected, 1e-9 * (1 + expected));
      if (count == 0) continue;
      values[count - 1] = std::numeric_limits<double>::infinity();
      EXPECT_FALSE(std::isfinite(square_sum(dtype, values.data_ptr(), count)));
    }
  }
  // Finite, though the square of it is not finite in fp32.
  EXPECT_TRUE(std::isfinite(square_sum(at::kFloat, at::full({9}, 3e38f).data_ptr(), 9)));
}

TEST(SquareSum, DoesNotDependOnAlignment) {
  const Tensor values = at::randn({1001});
  const Tensor shifted = at::empty({1002}).slice(0, 1);
  shifted.copy_(values);
  EXPECT_EQ(square_sum(at::kFloat, values.data_ptr(), 1001), square_sum(at::kFloat, shifted.data_ptr(), 1001));
}

TEST(AddBf16, RoundsToNearestEven) {
  // 1 + 2^-8 lies half-way between two bf16 numbers: to even is down; 1 + 3 × 2^-8 is up.
  Tensor a = at::ones({20}, at::kBFloat16), b = at::full({20}, 0x1p-8, at::kBFloat16), out = at::empty_like(a);
  combine(Format::kBrain, BinaryOp::kAdd, a.data_ptr(), b.data_ptr(), out.data_ptr(), 20);
  EXPECT_TRUE(at::equal(out, a));
  b.fill_(3 * 0x1p-8);
  combine(Format::kBrain, BinaryOp::kAdd, a.data_ptr(), b.data_ptr(), out.data_ptr(), 20);
  EXPECT_TRUE(at::equal(out, at::full({20}, 1 + 0x1p-6, at::kBFloat16)));
}

// Every format and operator beside libtorch's own arithmetic, tails included.
TEST(Combine, EqualsLibtorchWithEachInstructionSet) {
  testing_support::with_each_instruction_set([] {
    at::manual_seed(3);
    const std::pair<Format, at::ScalarType> formats[] = {{Format::kFloat, at::kFloat},
                                                         {Format::kDouble, at::kDouble},
                                                         {Format::kHalf, at::kHalf},
                                                         {Format::kBrain, at::kBFloat16}};
    for (const auto& [format, dtype] : formats) {
      for (const int64_t count : {0, 1, 7, 8, 16, 31, 100}) {
        const Tensor a = at::randn({count}).to(dtype), b = at::randn({count}).to(dtype), out = at::empty_like(a);
        const auto wide = dtype == at::kDouble ? at::kDouble : at::kFloat;
        const Tensor x = a.to(wide), y = b.to(wide);
        const auto run = [&, as = format](BinaryOp op) {
          combine(as, op, a.data_ptr(), b.data_ptr(), out.data_ptr(), count);
          return out;
        };
        EXPECT_TRUE(at::equal(run(BinaryOp::kAdd), (x + y).to(dtype))) << dtype << ' ' << count;
        EXPECT_TRUE(at::equal(run(BinaryOp::kMultiply), (x * y).to(dtype))) << dtype << ' ' << count;
        EXPECT_TRUE(at::equal(run(BinaryOp::kMax), at::maximum(a, b))) << dtype << ' ' << count;
        EXPECT_TRUE(at::equal(run(BinaryOp::kMin), at::minimum(a, b))) << dtype << ' ' << count;
      }
    }
  });
}

TEST(Combine, MaxAndMinPassNanOn) {
  const double nan = std::nan("");
  for (const auto& [format, dtype] :
       {std::pair{Format::kFloat, at::kFloat}, std::pair{Format::kHalf, at::kHalf},
        std::pair{Format::kBrain, at::kBFloat16}, std::pair{Format::kDouble, at::kDouble}}) {
    const Tensor a = at::tensor({nan, 1.0}, at::kDouble).to(dtype), b = at::tensor({2.0, nan}, at::kDouble).to(dtype);
    const Tensor out = at::empty_like(a);
    for (const BinaryOp op : {BinaryOp::kMax, BinaryOp::kMin}) {
      combine(format, op, a.data_ptr(), b.data_ptr(), out.data_ptr(), 2);
      EXPECT_TRUE(at::isnan(out).all().item<bool>()) << dtype;
    }
  }
}

}  // namespace
}  // namespace lockstep::comm
