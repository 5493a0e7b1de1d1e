#include "lockstep/parallel/pipeline/micro_batch_sums.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

namespace lockstep::parallel {
namespace {

// (1e8 + 1) + (-1e8 + 1) is 0 in fp32, and from left to right 1.
TEST(MicroBatchSums, AddUpByTheTree) {
  torch::nn::BatchNorm1d stage(1);
  MicroBatchSums sums(*stage, {stage->weight});
  for (const float value : {1e8F, 1.0F, -1e8F, 1.0F}) {
    stage->weight.mutable_grad() = at::full({1}, value);
    sums.after_backward();
    EXPECT_FALSE(stage->weight.grad().defined());
  }
  sums.finish();
  EXPECT_EQ(stage->weight.grad().item<float>(), 0);
}

TEST(MicroBatchSums, TheFirstOnesBuffersStay) {
  torch::nn::BatchNorm1d stage(1);
  MicroBatchSums sums(*stage, {});
  const c10::AutoGradMode no_grad(false);
  for (const float value : {3.0F, 5.0F}) {
    stage->running_mean.fill_(value);
    if (value == 3.0F) sums.after_first_forward();
  }
  sums.finish();
  EXPECT_EQ(stage->running_mean.item<float>(), 3);
}

}  // namespace
}  // namespace lockstep::parallel
