// An epoch's last batch that leaves a lane one sample, of which BatchNorm has one value a channel: it is foreseen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/long_test.h"
#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Nine pictures: with two lanes of four, the second step has one.
class SmallLanes : public ::testing::Test {
 protected:
  SmallLanes() { write_class_folders(photos_, 3, 3); }
  Result train(const Words& more, const std::string& run = "run", const char* size = "32") const {
    const Words words = {"train",  "imagenet", "--data",       photos_,    "--validation", "0",         "--batch-size",
                         "4",      "--arch",   "mobilenet_v2", "--lr",     "0.001",        "--threads", "1",
                         "--size", size,       "--out",        dir_ / run, "--lanes",      "2"};
    return lockstep(words + more, ".", std::chrono::seconds(120));
  }
  const TempDir dir_;
  const std::string photos_ = dir_ / "photos";
};

TEST_F(SmallLanes, AreRefusedBeforeTheRunWhereBatchNormNeedsMore) {
  for (const char* nproc : {"1", "2"}) {
    const auto result = train({"--nproc", nproc});
    EXPECT_EQ(result.exit_code, ConfigError::kExitCode);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("error: step 2, lane 0"), HasSubstr("--drop-last"), HasSubstr("BatchNorm")));
    EXPECT_FALSE(fs::exists(dir_ / "run"));
  }
}

TEST_F(SmallLanes, AreNoObstacleWhereTheyDoNotCome) {
  LOCKSTEP_LONG_TEST_IF(true);
  EXPECT_EQ(train({"--drop-last", "--steps", "2"}).exit_code, 0);
  EXPECT_EQ(train({"--steps", "1"}, "one").exit_code, 0);
  const auto larger = train({"--steps", "2"}, "larger", "64");
  EXPECT_EQ(larger.exit_code, 0) << "a map of 2 x 2 has four values: " << larger.err;
}

// Ten pictures leave one for each of the two lanes.
TEST_F(SmallLanes, AreWholeForSyncBatchNorm) {
  fs::copy(photos_ + "/class_00/0.jpg", photos_ + "/class_00/more.jpg");
  EXPECT_EQ(train({"--steps", "2"}).exit_code, ConfigError::kExitCode);
  EXPECT_EQ(train({"--sync-bn", "--steps", "2"}, "sync").exit_code, 0);
}

// Nine leave one for both together.
TEST_F(SmallLanes, AreRefusedForSyncBatchNormWhereAllLanesHaveOneSample) {
  for (const char* nproc : {"1", "2"}) {
    const auto result = train({"--nproc", nproc, "--sync-bn"});
    EXPECT_EQ(result.exit_code, ConfigError::kExitCode);
    EXPECT_THAT(result.err, AllOf(HasSubstr("error: step 2: all lanes together will have one sample"),
                                  HasSubstr("--drop-last"), HasSubstr("BatchNorm")));
    EXPECT_FALSE(fs::exists(dir_ / "run"));
  }
  EXPECT_EQ(train({"--sync-bn", "--drop-last", "--steps", "2"}, "dropped").exit_code, 0);
}

// The trial changes no bit: a run that it looked at is as one that it did not.
TEST_F(SmallLanes, AreTriedWithoutATrace) {
  ASSERT_EQ(train({"--steps", "1"}, "untried", "64").exit_code, 0);
  ASSERT_EQ(train({"--steps", "2", "--save-every", "1"}, "tried", "64").exit_code, 0);
  const auto first = [&](const char* run) {
    const auto result = lockstep({"inspect", dir_ / run + "/checkpoints/step-000001.pt", "--json"});
    auto all = nlohmann::json::parse(result.out);
    nlohmann::json model;
    for (const auto& [name, leaf] : all.items()) {
      if (name.starts_with("model/")) model[name] = leaf;
    }
    EXPECT_GT(model.size(), 100u);
    return model;
  };
  EXPECT_EQ(first("tried"), first("untried"));
}

}  // namespace
}  // namespace lockstep::e2e
