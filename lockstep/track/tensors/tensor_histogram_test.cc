#include "lockstep/track/tensors/tensor_histogram.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

namespace lockstep::track {
namespace {

TEST(TensorHistogram, IsOfAllElements) {
  const at::Tensor values = at::arange(24, at::kFloat).reshape({2, 3, 4}).transpose(0, 2);
  const auto histogram = histogram_of(values, 0.5);
  ASSERT_TRUE(histogram);
  EXPECT_EQ(histogram->count, 24);
  EXPECT_EQ(histogram->max, 11.5);
  EXPECT_EQ(histogram->sum, 138);
  EXPECT_EQ(histogram_of(values.slice(0, 0, 4, 2))->count, 12) << "of a view with gaps";
}

TEST(TensorHistogram, TakesAnyFloatingPointType) {
  for (const auto type : {at::kHalf, at::kBFloat16, at::kDouble}) {
    EXPECT_EQ(histogram_of(at::full({3}, 0.25, type))->sum, 0.75) << type;
  }
}

TEST(TensorHistogram, OfASparseTensorTheStoredElementsCount) {
  const at::Tensor sparse =
      at::sparse_coo_tensor(at::tensor({0, 2, 2}, at::kLong).unsqueeze(0), at::tensor({1.0f, 2.0f, 3.0f}), {4});
  EXPECT_EQ(histogram_of(sparse)->count, 2);
  EXPECT_EQ(histogram_of(sparse)->max, 5);
}

TEST(TensorHistogram, ATensorThatIsNotFiniteHasNone) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(histogram_of(at::tensor({1.0f, infinity})));
  EXPECT_FALSE(histogram_of(at::tensor({1.0f, std::numeric_limits<float>::quiet_NaN()})));
  EXPECT_FALSE(histogram_of(at::empty({0})));
}

}  // namespace
}  // namespace lockstep::track
