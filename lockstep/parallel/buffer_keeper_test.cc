#include "lockstep/parallel/buffer_keeper.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

// Changes the buffers as BatchNorm changes its statistics in a lane.
void change(torch::nn::BatchNorm1d& norm, double by) {
  const at::NoGradGuard no_grad;
  norm->running_mean.add_(by);
}

// No other keeper has taken buffers.
BufferKeeper::Taken& alone() {
  static BufferKeeper::Taken taken;
  taken.clear();
  return taken;
}

// Counts the broadcasts, which a world of one has no other trace of.
class Counting final : public comm::Communicator {
 public:
  int broadcasts = 0;
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* backend() const override { return "counting"; }
  bool shares(const at::Tensor&) const override { return true; }
  void progress() override {}
  void abort(const std::string&) noexcept override {}

 protected:
  std::shared_ptr<comm::Work> begin(comm::Call call) override {
    broadcasts += call.kind == comm::OpKind::kBroadcast ? 1 : 0;
    return single_.start(std::move(call));
  }
  std::unique_ptr<comm::Communicator> group(const std::vector<int>&) override { return nullptr; }

 private:
  comm::SingleCommunicator single_;
};

TEST(BufferKeeper, TravelBeforeEachStepAndOnceForEachChange) {
  Counting comm;
  torch::nn::Sequential net{torch::nn::BatchNorm1d(3)};
  BufferKeeper keeper(*net);
  for (int step = 0; step < 3; ++step) {
    keeper.begin_step(comm, alone());
    EXPECT_EQ(comm.broadcasts, step + 1) << "before every step, for a lane may read them";
    keeper.end_step();
  }
  keeper.sync(comm, alone());
  keeper.sync(comm, alone());
  EXPECT_EQ(comm.broadcasts, 4);
  keeper.mark_changed();
  keeper.sync(comm, alone());
  EXPECT_EQ(comm.broadcasts, 5);
}

TEST(BufferKeeper, LanesSeeTheStepsStartAndLaneZeroSurvives) {
  Counting comm;
  torch::nn::BatchNorm1d norm(3);
  BufferKeeper keeper(*norm);
  keeper.begin_step(comm, alone());
  for (int lane = 0; lane < 3; ++lane) {
    if (lane > 0) keeper.begin_lane();
    EXPECT_EQ(norm->running_mean[0].item<float>(), 0) << "lane " << lane;
    change(norm, lane + 1);
    keeper.end_lane(lane, static_cast<size_t>(lane));
  }
  keeper.end_step();
  EXPECT_EQ(norm->running_mean[0].item<float>(), 1);
}

// As torch::load does.
TEST(BufferKeeper, TakesBackABufferThatGotOtherMemory) {
  Counting comm;
  torch::nn::BatchNorm1d norm(3);
  BufferKeeper keeper(*norm);
  norm->running_mean.set_data(at::full({3}, 7.0f));
  keeper.begin_step(comm, alone());
  EXPECT_EQ(comm.broadcasts, 1) << "rank 0's go to all";
  change(norm, 1);
  keeper.begin_lane();
  EXPECT_EQ(norm->running_mean[0].item<float>(), 7) << "the step's start";
  norm->running_mean.set_data(at::zeros({3}, at::kDouble));
  EXPECT_THAT(testing_support::refusal([&] { keeper.sync(comm, alone()); }),
              ::testing::HasSubstr("running_mean is CPUDoubleType [3] now, and was CPUFloatType [3]"));
}

TEST(BufferKeeper, ABufferOfTwoModulesIsTheFirstOnes) {
  Counting comm;
  torch::nn::BatchNorm1d norm(3);
  const torch::nn::Sequential one{norm}, two{norm};
  BufferKeeper first(*one), second(*two);
  BufferKeeper::Taken taken;
  for (BufferKeeper* each : {&first, &second}) each->begin_step(comm, taken);
  for (int lane = 0; lane < 3; ++lane) {
    if (lane > 0) first.begin_lane();
    if (lane > 0) second.begin_lane();
    EXPECT_EQ(norm->running_mean[0].item<float>(), 0) << "lane " << lane;
    change(norm, lane + 1);
    first.end_lane(lane, static_cast<size_t>(lane));
    second.end_lane(lane, static_cast<size_t>(lane));
  }
  taken.clear();
  for (BufferKeeper* each : {&first, &second}) {
    each->end_step();
    each->sync(comm, taken);
  }
  EXPECT_EQ(norm->running_mean[0].item<float>(), 1);
}

TEST(BufferKeeper, ViewsOfABufferStayViews) {
  Counting comm;
  torch::nn::Module module;
  const at::Tensor whole = module.register_buffer("whole", at::zeros({2}));
  const at::Tensor view = module.register_buffer("view", whole.view({2, 1}));
  BufferKeeper keeper(module);
  keeper.begin_step(comm, alone());
  whole.add_(1);
  EXPECT_TRUE(at::equal(view, at::ones({2, 1})));
  keeper.restore();
  EXPECT_TRUE(at::equal(view, at::zeros({2, 1})));
}

TEST(BufferKeeper, WithoutLaneZeroNothingChanges) {
  Counting comm;
  torch::nn::BatchNorm1d norm(3);
  BufferKeeper keeper(*norm);
  keeper.begin_step(comm, alone());
  change(norm, 5);
  keeper.end_lane(2, 0);
  keeper.end_step();
  EXPECT_EQ(norm->running_mean[0].item<float>(), 0);
}

}  // namespace
}  // namespace lockstep::parallel
