// The arithmetic is libtorch's on any device, so it is tested on the CPU.
#include "lockstep/comm/plugins/nccl/device_fold.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/comm/reduce.h"

namespace lockstep::comm {
namespace {

at::Tensor rows_of(int ranks, int64_t elements, at::ScalarType dtype) {
  at::Tensor rows = at::arange(ranks * elements).remainder(997).to(at::kFloat).mul(0.37).sub(150);
  return rows.view({ranks, elements}).to(dtype);
}

TEST(DeviceFold, CombinesInTheTreesOrderToTheBit) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong}) {
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) {
      const at::Tensor rows = rows_of(ranks, 1001, dtype);
      std::vector<Source> sources;
      FoldScratch scratch;
      for (int k = 0; k < ranks; ++k) sources.push_back({rows[k].const_data_ptr()});
      for (const auto op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
        at::Tensor expected = at::empty({1001}, dtype);
        reduce_block(dtype, op, sources, expected.mutable_data_ptr(), 1001, scratch);
        EXPECT_TRUE(at::equal(combine_rows(op, rows), expected))
            << ranks << " ranks, " << name_of(op) << " of " << dtype;
      }
    }
  }
}

TEST(DeviceFold, MeanProductAndBits) {
  const at::Tensor integers = at::tensor({-7, 8, 4, 1}, at::kInt).view({2, 2});
  EXPECT_TRUE(at::equal(combine_rows(ReduceOp::kProduct, integers), at::tensor({-28, 8}, at::kInt)));
  EXPECT_TRUE(at::equal(combine_rows(ReduceOp::kBitOr, integers), at::tensor({-7 | 4, 9}, at::kInt)));
  EXPECT_TRUE(at::equal(combine_rows(ReduceOp::kMean, at::tensor({1.0, 2.0}).view({2, 1})), at::tensor({1.5})));
}

TEST(DeviceFold, ARowComesBackThroughAnyStrides) {
  const at::Tensor image = at::arange(24, at::kFloat).view({1, 2, 3, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor scalar = at::full({}, 3.5f);
  const at::Tensor image_before = image.clone(), scalar_before = scalar.clone();
  const DeviceRow row({image, scalar}, at::kFloat);
  ASSERT_EQ(row.values().sizes(), at::IntArrayRef({25}));
  row.values().mul_(2);
  row.finish();
  EXPECT_TRUE(at::equal(image, image_before * 2));
  EXPECT_TRUE(at::equal(scalar, scalar_before * 2));
}

TEST(DeviceFold, ARowRoundsToTheWiresType) {
  const at::Tensor values = at::full({3}, 1.00390625f + 0.001f);
  const DeviceRow row({values}, at::kBFloat16);
  row.finish();
  EXPECT_TRUE(at::equal(values, at::full({3}, 1.00390625f + 0.001f).to(at::kBFloat16).to(at::kFloat)));
}

// A bucket's gradients are parts of one flat tensor.
TEST(DeviceFold, TensorsThatFollowEachOtherInMemoryAreNotCopied) {
  const at::Tensor flat = at::arange(30, at::kFloat);
  const at::Tensor image = flat.as_strided({1, 2, 3, 4}, {24, 1, 8, 2}, 2), rest = flat.narrow(0, 26, 3);
  const DeviceRow row({image, flat.narrow(0, 26, 0), rest}, at::kFloat);
  EXPECT_EQ(row.values().const_data_ptr(), flat.narrow(0, 2, 1).const_data_ptr());
  EXPECT_EQ(row.values().numel(), 27);
  row.values().neg_();
  row.finish();
  EXPECT_EQ(flat[1].item<float>(), 1);
  EXPECT_EQ(flat[28].item<float>(), -28);
  EXPECT_EQ(flat[29].item<float>(), 29);
}

TEST(DeviceFold, OthersAreCopied) {
  const at::Tensor flat = at::arange(30, at::kFloat);
  const std::vector<std::vector<at::Tensor>> cases = {{flat.narrow(0, 5, 5), flat.narrow(0, 0, 5)},
                                                      {flat.narrow(0, 0, 5), flat.narrow(0, 6, 5)},
                                                      {flat.narrow(0, 0, 5), at::ones({5})}};
  for (const auto& tensors : cases) {
    const DeviceRow row(tensors, at::kFloat);
    EXPECT_FALSE(row.values().is_alias_of(flat));
    EXPECT_TRUE(at::equal(row.values(), at::cat(tensors)));
  }
}

}  // namespace
}  // namespace lockstep::comm
