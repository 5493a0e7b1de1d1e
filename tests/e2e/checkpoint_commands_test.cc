// What inspect, verify and diff say of checkpoints and runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/testing/long_test.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
namespace fs = std::filesystem;

std::string last_checkpoint() { return finished_run() + "/checkpoints/last.pt"; }

void copy_run(const std::string& to) {
  fs::copy(finished_run(), to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

TEST(InspectJson, IsWhatPyTorchHasFoundInItsOwnFiles) {
  int files = 0;
  for (const auto& each : fs::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/fixtures/checkpoints")) {
    if (each.path().extension() != ".pt") continue;
    auto expected = each.path();
    expected.replace_extension(".expected.json");
    const auto result = lockstep({"inspect", each.path().string(), "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(nlohmann::json::parse(result.out), nlohmann::json::parse(read_file(expected))) << each.path();
    ++files;
  }
  EXPECT_GE(files, 7);
}

TEST(InspectText, IsATreeWithStatisticsAndTotals) {
  const auto result = lockstep({"inspect", last_checkpoint()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nmodel\n  conv1.weight  "));
  EXPECT_THAT(result.out, HasSubstr("float32  [20, 1, 5, 5]"));
  EXPECT_THAT(result.out, HasSubstr("  mean  "));
  EXPECT_THAT(result.out, HasSubstr("\nmodel: 6 tensors, 20,350 parameters, 79.5 KiB\n"));
  EXPECT_THAT(result.out, HasSubstr("\ntotal: "));
}

TEST(Inspect, TakesWhatIsAskedFor) {
  const auto result = lockstep({"inspect", last_checkpoint(), "--only", "model/*.bias", "--stats", "--json"});
  const auto all = nlohmann::json::parse(result.out);
  EXPECT_EQ(all.size(), 3u) << result.out;
  for (const char* name : {"dtype", "shape", "sha256", "bytes", "min", "max", "mean", "std", "nan", "inf"}) {
    EXPECT_TRUE(all.begin()->contains(name)) << name;
  }
  const auto none = lockstep({"inspect", last_checkpoint(), "--only", "modle"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, AllOf(StartsWith("error: --only modle: "), HasSubstr("has no such path")));
}

TEST(Verify, AWholeRun) {
  const auto result = lockstep({"verify", finished_run()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("whole       " + last_checkpoint() + "  leads to step-"));
  EXPECT_THAT(result.out, HasSubstr("metrics.jsonl  "));
  EXPECT_THAT(result.out, Not(HasSubstr("damaged")));
  EXPECT_EQ(result.err, "");
}

TEST(Verify, NamesWhatIsDamaged) {
  const TempDir dir;
  const std::string run = dir / "run";
  copy_run(run);
  const std::string newest = fs::canonical(run + "/checkpoints/last.pt");
  fs::resize_file(newest, fs::file_size(newest) / 2);
  write_file(run + "/checkpoints/step-000099.pt.tmp", "half");
  const auto result = lockstep({"verify", run, last_checkpoint()});
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_THAT(result.out, HasSubstr("damaged     " + newest + "  "));
  EXPECT_THAT(result.out, HasSubstr("left over   " + run + "/checkpoints/step-000099.pt.tmp"));
  EXPECT_THAT(result.out, HasSubstr("whole       " + last_checkpoint()));
  EXPECT_THAT(result.err, AllOf(StartsWith("error: 2 of "), HasSubstr("are damaged; the first: " + newest)));
  const auto json = nlohmann::json::parse(lockstep({"verify", newest, "--json"}).out);
  EXPECT_EQ(json.at(0).at("state"), "damaged");
}

TEST(Verify, RefusesEachHostileFileInOneLine) {
  Words words = {"verify"};
  for (const auto& each : fs::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/fixtures/hostile")) {
    if (each.path().extension() == ".pt") words.push_back(each.path().string());
  }
  const auto files = static_cast<std::ptrdiff_t>(words.size()) - 1;
  ASSERT_GE(files, 14);
  const auto result = lockstep(words);
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), files) << result.out;
  for (size_t i = 1; i < words.size(); ++i) EXPECT_THAT(result.out, HasSubstr("damaged     " + words[i] + "  "));
}

TEST(Verify, WhatIsNotThere) {
  EXPECT_EQ(lockstep({"verify", "/nonexistent/run"}).exit_code, 2);
  const TempDir dir;
  EXPECT_EQ(lockstep({"verify", dir.path()}).exit_code, 2);
}

// The promise of the same bits, as a user checks it.
TEST(Diff, RunsThatDifferInTheNumberOfRanksAloneAreEqual) {
  const TempDir dir;
  const std::string run = dir / "run";
  const auto trained = lockstep(train_words({"--steps", std::to_string(kSteps), "--nproc", "2", "--out", run}));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto result = lockstep({"diff", finished_run(), run});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("  nproc  1 | 2  (does not bear on the result)\n"));
  EXPECT_THAT(result.out, HasSubstr("metrics: equal in "));
}

TEST(Diff, SaysWhereTwoRunsWentApart) {
  const std::string& other = finished_run({"--lr", "0.02"});
  const auto result = lockstep({"diff", finished_run(), other});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("\n  lr  "));
  EXPECT_THAT(result.out, HasSubstr("metrics: part at step 1 (train); "));
  EXPECT_THAT(result.out, HasSubstr("\n  weights_sha256  "));
  EXPECT_THAT(result.out, HasSubstr("\n  model/fc.weight  float32 [10, 980]: "));
  const auto json = nlohmann::json::parse(lockstep({"diff", finished_run(), other, "--json"}).out);
  EXPECT_EQ(json.at("equal"), false);
  EXPECT_EQ(json.at("metrics").at("first").at("step"), 1);
  EXPECT_GT(json.at("checkpoints").at("differing").get<int>(), 0);
}

TEST(Diff, OfTwoCheckpointsIsBounded) {
  const std::string other = finished_run({"--lr", "0.02"}) + "/checkpoints/last.pt";
  const auto result = lockstep({"diff", last_checkpoint(), other, "--most", "2"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, AllOf(StartsWith("A: " + last_checkpoint() + "\nB: " + other + "\n"), HasSubstr("\n  and ")));
  const auto equal = lockstep({"diff", last_checkpoint(), last_checkpoint()});
  EXPECT_EQ(equal.exit_code, 0);
  EXPECT_THAT(equal.out, HasSubstr("all equal"));
}

// Of the 1000 MB a third is the model's, which is there before; the optimizer's state is not.
TEST(Loading, OfAGigabyteTakesLittleMoreThanItsTensors) {
  LOCKSTEP_LONG_TEST_IF(true);
  const auto peak_mb = [](const char* weights_alone) {
    const auto result =
        lockstep({"bench", "checkpoint", "--megabytes", "1000", "--rounds", "1", "--weights", weights_alone, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto found = nlohmann::json::parse(result.out, nullptr, false);
    EXPECT_GT(found.value("bytes", 0), 980'000'000) << result.out;
    return found.value("load_peak_mb", 1e9);
  };
  EXPECT_LT(peak_mb("off"), 1150 - 333);
  EXPECT_LT(peak_mb("on"), 150);
}

TEST(Diff, MistakesAreNoDifference) {
  EXPECT_EQ(lockstep({"diff", last_checkpoint()}).exit_code, 2);
  EXPECT_EQ(lockstep({"diff", last_checkpoint(), "/nonexistent.pt"}).exit_code, 2);
  const auto bad = lockstep({"diff", last_checkpoint(), LOCKSTEP_SOURCE_DIR "/tests/fixtures/hostile/truncated.pt"});
  EXPECT_EQ(bad.exit_code, 65);
  EXPECT_THAT(bad.err, HasSubstr("truncated.pt"));
}

}  // namespace
}  // namespace lockstep::e2e
