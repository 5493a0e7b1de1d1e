#include "lockstep/train/inspection/run_comparison.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"

namespace lockstep::train {
namespace {

checkpoint::Value read_whole(const std::string& file) { return checkpoint::read_checkpoint(file); }

using checkpoint::Dict;
using testing::ElementsAre;
using testing::HasSubstr;

// Two folders of runs.
class RunComparisonTest : public testing::Test {
 protected:
  RunComparisonTest() {
    for (const char* run : {"/a", "/b"}) {
      std::filesystem::create_directory(dir_.path() + run);
      write(run, "config.toml", "lr = 0.1\nnproc = 1\nturns = 2\n");
      write(run, "metrics.jsonl", "{\"kind\":\"train\",\"step\":1,\"loss\":3}\n");
      write(run, "final.json", R"({"steps": 1, "weights_sha256": "x", "seconds": 1})");
      save(run, 1, 0);
    }
  }
  void write(const std::string& run, const char* name, const std::string& text) {
    std::ofstream(dir_.path() + run + '/' + name) << text;
  }
  void save(const std::string& run, int64_t step, double weight) {
    checkpoint::CheckpointStore(dir_.path() + run + "/checkpoints")
        .save(step, Dict{{"model", Dict{{"weight", at::full({3}, weight)}}}, {"step", step}});
  }
  RunComparison compare() { return compare_runs(dir_ / "a", dir_ / "b", read_whole); }

  testing_support::TempDir dir_;
};

TEST_F(RunComparisonTest, EqualRuns) {
  const auto found = compare();
  EXPECT_TRUE(found.equal());
  EXPECT_THAT(found.checkpoints->equal_steps, ElementsAre(1));
  EXPECT_THAT(text_of(found, 20),
              HasSubstr("options: equal\nmetrics: equal in 1 record\ncheckpoints: equal at step 1\n"));
  EXPECT_EQ(json_of(found, 20)["equal"], true);
}

TEST_F(RunComparisonTest, OptionsThatBearOnTheResultCountAndOthersAreShown) {
  write("/b", "config.toml", "lr = 0.1\nnproc = 2\nturns = 2\n");
  auto found = compare();
  EXPECT_TRUE(found.equal());
  EXPECT_THAT(text_of(found, 20), HasSubstr("  nproc  1 | 2  (does not bear on the result)\n"));
  write("/b", "config.toml", "lr = 0.2\nnproc = 1\n");
  found = compare();
  EXPECT_FALSE(found.equal());
  EXPECT_THAT(text_of(found, 20), HasSubstr("  lr  0.1 | 0.2\n  turns  2 | –\n"));
}

TEST_F(RunComparisonTest, TheFirstCheckpointsThatDiffer) {
  for (const char* run : {"/a", "/b"}) save(run, 2, 0);
  save("/a", 3, 1);
  save("/b", 3, 2);
  save("/a", 4, 1);
  save("/b", 4, 9);
  const auto found = compare();
  EXPECT_FALSE(found.equal());
  EXPECT_THAT(found.checkpoints->equal_steps, ElementsAre(2));  // the stores keep three
  EXPECT_THAT(found.checkpoints->a, testing::EndsWith("step-000003.pt"));
  EXPECT_THAT(
      text_of(found, 20),
      HasSubstr("1 difference\n  model/weight  float32 [3]: 3 of 3 elements differ, by at most 1 at [0] (1 | 2)"));
}

TEST_F(RunComparisonTest, WithoutACommonStepTheNewestAreCompared) {
  std::filesystem::remove_all(dir_ / "b/checkpoints");
  EXPECT_FALSE(compare().checkpoints.has_value());
  EXPECT_THAT(compare().only_one_has, ElementsAre("checkpoints: only A has any"));
  save("/b", 7, 0);
  const auto found = compare();
  ASSERT_EQ(found.checkpoints->found.differences.size(), 1u);
  EXPECT_EQ(found.checkpoints->found.differences[0].path, "step");
}

TEST_F(RunComparisonTest, MetricsResultsAndMissingFiles) {
  write("/b", "metrics.jsonl", "{\"kind\":\"train\",\"step\":1,\"loss\":4}\n");
  write("/b", "final.json", R"({"steps": 1, "weights_sha256": "y", "seconds": 9})");
  std::filesystem::remove(dir_ / "b/config.toml");
  const auto found = compare();
  EXPECT_EQ(found.metrics.step, 1);
  EXPECT_EQ(found.results.size(), 1u);
  EXPECT_THAT(found.only_one_has, ElementsAre("config.toml: only A has it"));
  const std::string text = text_of(found, 20);
  EXPECT_THAT(text, HasSubstr("metrics: part at step 1 (train); 1 of 1 records differ\n  loss  3 | 4\n"));
  EXPECT_THAT(text, HasSubstr("  weights_sha256  x | y\n"));
  const auto json = json_of(found, 20);
  EXPECT_EQ(json["metrics"]["first"].dump(), R"({"step":1,"kind":"train","fields":[{"name":"loss","a":3,"b":4}]})");
}

TEST_F(RunComparisonTest, ResultsThatAreNone) {
  write("/b", "final.json", "[1");
  EXPECT_THROW(compare(), DataError);
}

TEST_F(RunComparisonTest, FoldersOfOtherThingsAreNeverEqual) {
  std::filesystem::create_directories(dir_ / "c");
  std::filesystem::create_directories(dir_ / "d");
  EXPECT_THROW(compare_runs(dir_ / "c", dir_ / "d", read_whole), ConfigError);
  EXPECT_THROW(compare_runs(dir_ / "a", dir_ / "d", read_whole), ConfigError);
}

TEST_F(RunComparisonTest, FoldersOfCheckpointsAlone) {
  const auto found = compare_runs(dir_ / "a/checkpoints", dir_ / "b/checkpoints", read_whole);
  EXPECT_TRUE(found.equal());
  EXPECT_THAT(found.checkpoints->equal_steps, ElementsAre(1));
}

}  // namespace
}  // namespace lockstep::train
