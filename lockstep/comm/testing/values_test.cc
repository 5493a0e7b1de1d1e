#include "lockstep/comm/testing/values.h"

#include <gtest/gtest.h>

namespace lockstep::comm::testing {
namespace {

TEST(Values, ExpectedIsInTheTreesOrder) {
  // (2^24 + 1) + 1 loses both ones; 2^24 + (1 + 1) would not.
  const std::vector<at::Tensor> values = {at::full({1}, 16777216.0f), at::ones({1}), at::ones({1})};
  EXPECT_EQ(expected(values, ReduceOp::kSum).item<float>(), 16777216.0f);
  const std::vector<at::Tensor> turned = {at::ones({1}), at::ones({1}), at::full({1}, 16777216.0f)};
  EXPECT_EQ(expected(turned, ReduceOp::kSum).item<float>(), 16777218.0f);
}

TEST(Values, TheWireRoundsEveryNode) {
  // 1 + 2^-9 is 1 in bf16, as a leaf already.
  const std::vector<at::Tensor> values = {at::full({1}, 1.001953125f), at::full({1}, 1.001953125f)};
  EXPECT_EQ(expected_on_wire(values, at::kBFloat16).item<float>(), 2.0f);
}

TEST(Values, LayoutsHoldTheSame) {
  const at::Tensor values = input_of(1, at::kFloat, {6});
  for (const Layout layout : kLayouts) EXPECT_TRUE(at::equal(laid_out(values, layout), values));
  EXPECT_FALSE(laid_out(values, Layout::kStrided).is_contiguous());
}

}  // namespace
}  // namespace lockstep::comm::testing
