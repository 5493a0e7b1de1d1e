#include "lockstep/train/fixed_batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

data::LaneBatch batch_of(int64_t samples, double value, at::ScalarType dtype = at::kFloat) {
  data::LaneBatch batch;
  static_cast<data::Batch&>(batch) =
      data::Batch::of(at::full({samples, 3, 4, 4}, value, dtype), at::full({samples}, value, at::kLong));
  batch.lane = 2;
  return batch;
}

TEST(FixedBatch, BatchesOfOneShapeHaveOneMemory) {
  FixedBatch fixed(/*channels_last=*/true);
  data::LaneBatch first = batch_of(8, 1), second = batch_of(8, 2);
  EXPECT_TRUE(fixed.place(first));
  EXPECT_TRUE(first.data().is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(fixed.place(second));
  EXPECT_EQ(second.data().const_data_ptr(), first.data().const_data_ptr());
  EXPECT_EQ(second.target().const_data_ptr(), first.target().const_data_ptr());
  EXPECT_TRUE(at::equal(second.data(), batch_of(8, 2).data()) && at::equal(second.target(), batch_of(8, 2).target()));
  EXPECT_EQ(second.lane, 2);
}

TEST(FixedBatch, AnEpochsLastStaysWhereItIs) {
  FixedBatch fixed(false);
  data::LaneBatch whole = batch_of(8, 1), last = batch_of(5, 2), next = batch_of(8, 3);
  fixed.place(whole);
  EXPECT_FALSE(fixed.place(last));
  EXPECT_EQ(last.size(), 5);
  EXPECT_NE(last.data().const_data_ptr(), whole.data().const_data_ptr());
  EXPECT_FALSE(fixed.place(next));
}

TEST(FixedBatch, OtherShapesGetOtherMemory) {
  FixedBatch fixed(false);
  data::LaneBatch small = batch_of(4, 1), large = batch_of(8, 2), half = batch_of(8, 3, at::kHalf);
  EXPECT_TRUE(fixed.place(small));
  EXPECT_TRUE(fixed.place(large));
  EXPECT_TRUE(fixed.place(half));
  EXPECT_EQ(half.data().scalar_type(), at::kHalf);
}

}  // namespace
}  // namespace lockstep::train
