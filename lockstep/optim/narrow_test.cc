#include "lockstep/optim/narrow.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

namespace lockstep::optim {
namespace {

// Numbers of all sizes, ties between two neighbours among them, and what lies beyond the types' ranges.
at::Tensor numbers(int64_t size) {
  at::manual_seed(size);
  at::Tensor x = at::randn({size}) * at::exp2(at::randint(-30, 30, {size}));
  const float special[] = {1 + 1.0F / 256, 1 + 3.0F / 256, 1 + 1.0F / 2048, 1 + 3.0F / 2048, 65519,
                           65520,          1e-8F,          -6e-8F,          3.4e38F,         0,
                           -0.0F,          1e-40F};
  for (int64_t i = 0; i < std::min<int64_t>(size, std::size(special)); ++i) x[size - 1 - i] = special[i];
  return x;
}

template <typename T>
void expect_torchs_rounding(at::ScalarType type) {
  for (const int64_t size : {0, 1, 5, 16, 33, 1000}) {
    const at::Tensor x = numbers(size), rounded = at::empty({size}, type), back = at::empty({size});
    narrow(x.const_data_ptr<float>(), static_cast<size_t>(size), rounded.mutable_data_ptr<T>());
    EXPECT_TRUE(at::equal(rounded, x.to(type))) << size;
    widen(rounded.const_data_ptr<T>(), static_cast<size_t>(size), back.mutable_data_ptr<float>());
    EXPECT_TRUE(at::equal(back, rounded.to(at::kFloat))) << size;
  }
}

TEST(Narrow, RoundsAsTorch) {
  expect_torchs_rounding<at::Half>(at::kHalf);
  expect_torchs_rounding<at::BFloat16>(at::kBFloat16);
}

TEST(Narrow, NanAndInfinityStay) {
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
  at::Half half[2];
  at::BFloat16 brain[2];
  narrow(odd, 2, half);
  narrow(odd, 2, brain);
  EXPECT_TRUE(std::isnan(static_cast<float>(half[0])) && std::isnan(static_cast<float>(brain[0])));
  EXPECT_EQ(static_cast<float>(half[1]), odd[1]);
  EXPECT_EQ(static_cast<float>(brain[1]), odd[1]);
}

}  // namespace
}  // namespace lockstep::optim
