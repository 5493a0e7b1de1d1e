#include "lockstep/train/setup.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>

namespace lockstep::train {
namespace {

TEST(Setup, LevelsBecomePolicies) {
  using amp::AmpLevel;
  using amp::HalfType;
  EXPECT_FALSE(amp::make_policy(amp_options(AmpLevel::kO0, HalfType::kBf16)).casts());
  EXPECT_EQ(amp_options(AmpLevel::kO3, HalfType::kFp16).opt_level, amp::OptLevel::kO3);
  EXPECT_EQ(amp_options(AmpLevel::kO1, HalfType::kFp16).dtype, at::kHalf);
}

TEST(Setup, MemoryFormatsKeepValues) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(3, 4, 5));
  const at::Tensor before = conv->weight.detach().clone();
  set_memory_format(*conv, true);
  EXPECT_TRUE(conv->weight.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::equal(conv->weight, before));
  EXPECT_TRUE(conv->weight.requires_grad());
  set_memory_format(*conv, false);
  EXPECT_TRUE(conv->weight.is_contiguous());
}

}  // namespace
}  // namespace lockstep::train
