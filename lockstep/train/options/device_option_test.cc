#include "lockstep/train/options/device_option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing_support::refusal;

const DeviceChoice kCuda = DeviceKind::kCuda, kSecond = {DeviceKind::kCuda, 1};

TEST(DeviceOption, ReadsWhatItWrites) {
  for (const DeviceChoice& each : {DeviceChoice(), kCuda, kSecond, DeviceChoice(DeviceKind::kCuda, 0)}) {
    EXPECT_EQ(read_device("device", write_device(each)), each);
  }
  EXPECT_EQ(write_device(kSecond), "cuda:1");
  for (const char* text : {"gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:10000", "cpu:0", "cuda :1", ""}) {
    EXPECT_EQ(refusal([&] { read_device("device", text); }),
              cat("--device ", text, ": expected cpu, cuda, or cuda:N for one GPU, as cuda:0"));
  }
}

TEST(DeviceOption, IsARowOfACommand) {
  config::OptionSet rows;
  DeviceChoice device;
  device.declare(rows, config::Effect::kTrajectory);
  const std::vector<config::GivenOption> given = {{"device", "cuda:1"}};
  rows.apply_as_given(given);
  EXPECT_EQ(device, kSecond);
  EXPECT_THAT(rows.arguments(), testing::ElementsAre("--device=cuda:1"));
  rows.reset();
  EXPECT_EQ(device, DeviceChoice());
}

TEST(DeviceOption, EachRankHasAGpuOfItsOwn) {
  EXPECT_EQ(choose_gpu(kCuda, {}, 1), 0);
  EXPECT_EQ(choose_gpu(kCuda, {.local_rank = 3, .size = 4}, 8), 3);
  EXPECT_EQ(choose_gpu(kCuda, {.local_rank = 3, .size = 4}, 1), 0) << "as Slurm's --gpus-per-task=1 has it";
}

TEST(DeviceOption, ANumberNamesOneForOneRankANode) {
  EXPECT_EQ(choose_gpu(kSecond, {}, 2), 1);
  EXPECT_THAT(refusal([] { choose_gpu(kSecond, {}, 1); }), HasSubstr("--device cuda:1: 1 GPU can be used here"));
  EXPECT_THAT(refusal([] { choose_gpu(kSecond, {.local_rank = 0, .size = 2}, 2); }),
              HasSubstr("--device cuda:1: is for one rank a node, and this one has 2; use --device cuda"));
  EXPECT_EQ(choose_gpu(kSecond, {.local_rank = 0, .size = 2, .may_share = true}, 2), 1);
}

TEST(DeviceOption, RanksShareGpusOnlyWhereTheyWereAskedTo) {
  for (const int rank : {0, 1, 2, 3}) {
    EXPECT_EQ(choose_gpu(kCuda, {.local_rank = rank, .size = 4, .may_share = true}, 2), rank % 2);
  }
  EXPECT_THAT(refusal([] { choose_gpu(kCuda, {.local_rank = 0, .size = 4}, 2); }),
              HasSubstr("--device cuda: 4 ranks on this node and 2 GPUs that they can use"));
}

TEST(DeviceOption, AMachineWithoutAGpuIsToldSo) {
  for (const DeviceChoice& each : {kCuda, DeviceChoice(DeviceKind::kCuda, 0)}) {
    EXPECT_EQ(refusal([&] { choose_gpu(each, {}, 0); }),
              cat("--device ", write_device(each),
                  ": no GPU can be used here; lockstep doctor says more. Leave --device out for the CPU"));
  }
}

TEST(DeviceOption, TheStarterOfRanksKnowsThatTheySeeTheSameGpus) {
  constexpr CountGpus kOne = [] { return 1; }, kTwo = [] { return 2; }, kNone = [] { return 0; };
  EXPECT_NO_THROW(check_gpus(DeviceKind::kCpu, 4, false, kNone));
  EXPECT_NO_THROW(check_gpus(kCuda, 2, false, kTwo));
  EXPECT_NO_THROW(check_gpus(kCuda, 2, true, kOne));
  EXPECT_NO_THROW(check_gpus(kSecond, 1, false, kTwo));
  EXPECT_THROW(check_gpus(kSecond, 2, false, kTwo), ConfigError);
  EXPECT_THROW(check_gpus(kCuda, 2, true, kNone), ConfigError);
  EXPECT_NO_THROW(check_gpus(kCuda, 1, false, kNone)) << "it looks for itself";
  EXPECT_THAT(refusal([] { check_gpus(kCuda, 2, false, kOne); }),
              HasSubstr("2 ranks on this node and 1 GPU that they can use"));
}

}  // namespace
}  // namespace lockstep::train
