#include "lockstep/comm/square_sums.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/comm/reduce.h"

namespace lockstep::comm {
namespace {

TEST(SquareSums, OneForEachBlockOfEachTensor) {
  const at::Tensor small = at::full({3}, 2.0f), large = at::ones({kBlockElements + 5}).to(at::kBFloat16);
  const at::Tensor sums = at::full({3}, -1.0, at::kDouble);
  take_square_sums({small, large}, sums);
  EXPECT_TRUE(at::equal(sums, at::tensor({12.0, static_cast<double>(kBlockElements), 5.0}, at::kDouble))) << sums;
}

TEST(SquareSums, OneForEachTensorWhereLibtorchTakesThem) {
  const at::Tensor image = at::rand({2, 3, 5, 7}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor large = at::full({kBlockElements + 5}, 1e30f);  // whose squares fp32 has no numbers for
  const at::Tensor none = at::empty({0}), broken = at::tensor({1.0f, INFINITY});
  const at::Tensor sums = at::full({4}, -1.0, at::kDouble);
  take_whole_square_sums({image, large, none, broken}, sums);
  EXPECT_NEAR(sums[0].item<double>(), image.to(at::kDouble).square().sum().item<double>(), 1e-12);
  EXPECT_NEAR(sums[1].item<double>() / 1e60, kBlockElements + 5, 1e-2);
  EXPECT_EQ(sums[2].item<double>(), 0);
  EXPECT_FALSE(std::isfinite(sums[3].item<double>()));
}

TEST(SquareSums, OnlyOnTheCpuForEachBlock) {
  EXPECT_EQ(square_sum_count(kBlockElements + 5, at::kCPU), 2);
  EXPECT_EQ(square_sum_count(kBlockElements + 5, at::kCUDA), 1);
}

}  // namespace
}  // namespace lockstep::comm
