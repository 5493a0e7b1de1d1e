#include "lockstep/parallel/packed_memory.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::parallel {
namespace {

TEST(PackedMemory, HasTheValuesOneAfterTheOther) {
  const std::vector<at::Tensor> tensors = {at::arange(5, at::kLong), at::ones({2, 3}), at::full({}, 7.0, at::kDouble)};
  const PackedMemory packed = pack(tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(at::equal(packed.parts[i], tensors[i])) << i;
    EXPECT_EQ(static_cast<const char*>(packed.parts[i].const_data_ptr()),
              static_cast<const char*>(packed.all.const_data_ptr()) + 64 * i);
  }
}

TEST(PackedMemory, WhatOverlapsStaysTogether) {
  const at::Tensor whole = at::arange(12, at::kFloat), other = at::ones({3});
  const PackedMemory packed = pack({whole.narrow(0, 2, 4), other, whole.view({3, 4}).t(),
                                    whole.narrow(0, 3, 9).view(at::kInt), whole.narrow(0, 0, 1).expand({4})});
  EXPECT_TRUE(at::equal(packed.parts[0], whole.narrow(0, 2, 4)));
  EXPECT_TRUE(at::equal(packed.parts[2], whole.view({3, 4}).t()));
  packed.parts[2].mul_(-1);
  EXPECT_TRUE(at::equal(packed.parts[0], -whole.narrow(0, 2, 4)));
  EXPECT_TRUE(at::equal(packed.parts[3].view(at::kFloat), -whole.narrow(0, 3, 9)));
  EXPECT_TRUE(at::equal(packed.parts[4], whole.narrow(0, 0, 1).expand({4})));
  EXPECT_TRUE(at::equal(packed.parts[1], other)) << "not a part of it";
}

TEST(PackedMemory, PartsOfOneMemoryThatDoNotOverlapAreTensorsLikeOthers) {
  const at::Tensor wide = at::arange(200, at::kFloat).view({2, 100});
  const PackedMemory packed = pack({wide.narrow(0, 1, 1), wide.narrow(0, 0, 1)});
  EXPECT_EQ(packed.all.numel(), 2 * 448);
  EXPECT_TRUE(at::equal(packed.parts[1], wide.narrow(0, 0, 1)));
  EXPECT_TRUE(pack({wide.select(1, 5)}).parts[0].is_contiguous()) << "without what lies between its elements";
}

TEST(PackedMemory, ElementsThatOverlapInPartAreRefused) {
  const at::Tensor bytes = at::zeros({16}, at::kByte);
  const at::Tensor floats = bytes.narrow(0, 4, 8).view(at::kFloat);
  EXPECT_THAT(testing_support::refusal([&] {
                pack({bytes.narrow(0, 2, 14), floats});
              }),
              ::testing::HasSubstr("buffers of two dtypes share memory"));
}

}  // namespace
}  // namespace lockstep::parallel
