#include "lockstep/comm/kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
  add_bf16(a.data_ptr(), b.data_ptr(), out.data_ptr(), 20);
  EXPECT_TRUE(at::equal(out, a));
  b.fill_(3 * 0x1p-8);
  add_bf16(a.data_ptr(), b.data_ptr(), out.data_ptr(), 20);
  EXPECT_TRUE(at::equal(out, at::full({20}, 1 + 0x1p-6, at::kBFloat16)));
}

}  // namespace
}  // namespace lockstep::comm
