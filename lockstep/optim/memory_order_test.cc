#include "lockstep/optim/memory_order.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

TEST(MemoryOrder, StridesOfSizeOneDoNotMatter) {
  const at::Tensor grey = at::rand({20, 1, 5, 5});
  const at::Tensor other = at::empty_strided({20, 1, 5, 5}, {25, 1, 5, 1});
  EXPECT_NE(grey.strides(), other.strides());
  EXPECT_TRUE(same_memory_order(grey, other));
}

TEST(MemoryOrder, OtherStridesAndSizesDo) {
  const at::Tensor plain = at::rand({4, 3, 5, 5});
  EXPECT_FALSE(same_memory_order(plain, plain.contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_FALSE(same_memory_order(at::rand({6}), at::rand({2, 3})));
}

TEST(MemoryOrder, CopiesOnlyWhereItMust) {
  const at::Tensor plain = at::rand({4, 3, 5, 5});
  const at::Tensor last = plain.contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(laid_out_as(plain, plain).is_same(plain));
  const at::Tensor moved = laid_out_as(last, plain);
  EXPECT_TRUE(same_memory_order(moved, last));
  EXPECT_TRUE(at::equal(moved, plain));
  EXPECT_EQ(laid_out_as(plain.to(at::kDouble), plain).scalar_type(), at::kDouble);
  EXPECT_TRUE(ordered_as(plain.to(at::kDouble), plain).is_same(plain));
  EXPECT_TRUE(same_memory_order(ordered_as(last, plain.to(at::kDouble)), last));
}

TEST(MemoryOrder, AsARow) {
  const at::Tensor last = at::arange(24).view({1, 2, 3, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor row = memory_of(last);
  EXPECT_EQ(row.sizes(), at::IntArrayRef({24}));
  EXPECT_EQ(row[1].item<int64_t>(), 12) << "the second channel comes next";
  row[1] = 99;
  EXPECT_EQ(last[0][1][0][0].item<int64_t>(), 99);
}

TEST(MemoryOrder, OfAGradient) {
  const at::Tensor weight = at::ones({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  weight.mutable_grad() = at::arange(96).to(at::kFloat).view({2, 3, 4, 4});
  const at::Tensor gradient = gradient_for("sgd", weight);
  EXPECT_TRUE(at::equal(gradient, weight.grad()));
  EXPECT_TRUE(same_memory_order(gradient, weight));
  weight.mutable_grad() = weight.grad().to_sparse();
  EXPECT_TRUE(at::equal(gradient_for("sgd", weight), gradient)) << "made dense";
  const at::Tensor matrix = at::ones({2, 3});
  matrix.mutable_grad() = at::ones({2, 3}).to_sparse_csr();
  EXPECT_THROW(gradient_for("sgd", matrix), ConfigError);
}

}  // namespace
}  // namespace lockstep::optim
