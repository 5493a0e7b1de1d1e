#include "lockstep/optim/memory_order.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

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
}

}  // namespace
}  // namespace lockstep::optim
