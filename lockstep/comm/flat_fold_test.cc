#include "lockstep/comm/flat_fold.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/comm/blocks.h"

namespace lockstep::comm {
namespace {

TEST(FlatFold, OneTensorIsItsOwnRow) {
  const at::Tensor tensor = at::arange(6, at::kFloat).view({2, 3});
  const Call call = calls::fold({tensor}, {.label = "test"});
  const FlatFold flat(call);
  EXPECT_EQ(flat.values().data_ptr(), tensor.data_ptr());
  EXPECT_EQ(flat.values().numel(), 6);
}

TEST(FlatFold, TensorsSideBySideAreTheRow) {
  const at::Tensor row = at::arange(8, at::kFloat);
  const Call call = calls::fold({row.narrow(0, 0, 3), row.narrow(0, 3, 5)}, {.label = "test"});
  EXPECT_EQ(FlatFold(call).values().data_ptr(), row.data_ptr());
  EXPECT_EQ(FlatFold(call).values().numel(), 8);
  const Call turned = calls::fold({row.narrow(0, 3, 5), row.narrow(0, 0, 3)}, {.label = "test"});
  EXPECT_NE(FlatFold(turned).values().data_ptr(), row.narrow(0, 3, 5).data_ptr());
}

TEST(FlatFold, ManyTensorsGoIntoARowAndBack) {
  const at::Tensor a = at::arange(5, at::kInt), empty = at::empty({0}, at::kInt), b = at::arange(3, at::kInt);
  const Call call = calls::fold({a, empty, b}, {.label = "test"});
  const FlatFold flat(call);
  EXPECT_TRUE(at::equal(flat.values(), at::cat({a, b})));
  flat.values().add_(10);
  flat.finish();
  EXPECT_TRUE(at::equal(a, at::arange(10, 15, at::kInt)));
  EXPECT_TRUE(at::equal(b, at::arange(10, 13, at::kInt)));
}

TEST(FlatFold, TravelsIn16BitsAndTakesSquareSums) {
  for (const auto wire : {at::kBFloat16, at::kHalf}) {
    const at::Tensor tensor = at::randn({5000}), rounded = tensor.to(wire).to(at::kFloat);
    const at::Tensor sums = at::zeros({2}, at::kDouble);
    const Call call = calls::fold({tensor}, {.label = "test", .square_sums = sums, .wire = wire});
    const FlatFold flat(call);
    EXPECT_EQ(flat.values().scalar_type(), wire);
    flat.finish();
    EXPECT_TRUE(at::equal(tensor, rounded));
    EXPECT_EQ(sums[1].item<double>(), square_sum(at::kFloat, rounded.data_ptr<float>() + kBlockElements, 5000 - 4096));
  }
}

}  // namespace
}  // namespace lockstep::comm
