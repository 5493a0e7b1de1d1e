// Tests what counts as an anomaly, and which operator is blamed. anomaly_test.cc tests layers and scopes.
#include "lockstep/amp/anomaly_search.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <algorithm>
#include <limits>

#include "lockstep/amp/anomaly.h"

namespace lockstep::amp {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(AnomalySearch, AnInfinityThatIsAskedForIsNone) {
  const torch::nn::Linear net(2, 2);
  const AnomalyWatch watch(*net);
  const at::Tensor scores = at::rand({2, 4}), mask = (at::arange(4) == 0).expand({2, 4});
  const at::Tensor masked = scores.masked_fill(mask, -kInf);
  at::softmax(masked * 2, 1).sum();
  EXPECT_EQ(watch.found(), std::nullopt);
  at::softmax(scores.masked_fill(at::ones({2, 4}, at::kBool), -kInf), 1);  // nothing is left: NaN
  EXPECT_EQ(watch.found(), "aten::softmax");
}

TEST(AnomalySearch, MemoryThatNothingWasWrittenToIsNone) {
  const torch::nn::Linear net(2, 2);
  const AnomalyWatch watch(*net);
  at::Tensor memory = at::empty({4, 4});
  std::fill_n(memory.data_ptr<float>(), 16, kNan);  // as freed memory may look
  memory.view({2, 8}).copy_(at::ones({2, 8}));
  at::Tensor out = at::empty({2});
  std::fill_n(out.data_ptr<float>(), 2, kNan);
  at::add_out(out, at::ones({2}), at::ones({2}));
  EXPECT_EQ(watch.found(), std::nullopt);
  memory.div_(0);
  EXPECT_EQ(watch.found(), "aten::div_");
}

// As code of ours writes results: no operator is seen to do it.
TEST(AnomalySearch, WhatNoOperatorWroteIsTheLayersThatAllocatedIt) {
  const torch::nn::Linear net(2, 2);
  const AnomalyWatch watch(*net);
  at::Tensor y = at::empty_like(torch::nn::Linear(net)(at::ones({2, 2})));
  std::fill_n(y.data_ptr<float>(), y.numel(), kNan);
  torch::relu(y);
  EXPECT_EQ(watch.found(), "bias, before aten::relu");
}

}  // namespace
}  // namespace lockstep::amp
