#include "lockstep/parallel/buffer_keeper.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

namespace lockstep::parallel {
namespace {

// What BatchNorm does to its statistics in a lane.
void change(torch::nn::BatchNorm1d& norm, double by) {
  const at::NoGradGuard no_grad;
  norm->running_mean.add_(by);
}

TEST(BufferKeeper, LanesSeeTheStepsStartAndLaneZeroSurvives) {
  torch::nn::BatchNorm1d norm(3);
  BufferKeeper keeper(*norm);
  EXPECT_FALSE(keeper.empty());
  keeper.begin_step();
  for (int lane = 0; lane < 3; ++lane) {
    if (lane > 0) keeper.begin_lane();
    EXPECT_EQ(norm->running_mean[0].item<float>(), 0) << "lane " << lane;
    change(norm, lane + 1);
    keeper.end_lane(lane);
  }
  keeper.end_step();
  EXPECT_EQ(norm->running_mean[0].item<float>(), 1);
}

TEST(BufferKeeper, WithoutLaneZeroNothingChanges) {
  torch::nn::BatchNorm1d norm(3);
  BufferKeeper keeper(*norm);
  keeper.begin_step();
  change(norm, 5);
  keeper.end_lane(2);
  keeper.end_step();
  EXPECT_EQ(norm->running_mean[0].item<float>(), 0);
}

}  // namespace
}  // namespace lockstep::parallel
