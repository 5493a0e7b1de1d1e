// Parameter groups of a run: same bits at any number of ranks, resumed as they were, refused where they changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;

const std::string kGroups = "--param-groups=conv*: lr_scale=0.1; *.bias: lr=0.02, weight_decay=0.1";
const Words kGrouped = {"--optimizer", "lars",  "--lr",       "0.1",      "--weight-decay",   "0.01", "--decay-all",
                        "off",         kGroups, "--schedule", "onecycle", "--cycle-momentum", "on",   "--ema",
                        "0.9",         "--amp", "O2"};

// With an optimizer that ranks don't shard, and one that they do.
TEST(Groups, GiveTheSameBitsAtAnyNumberOfRanksAndAfterAResume) {
  for (const Words& words : {kGrouped, kAveraged + Words{"--decay-all", "off", kGroups}}) {
    const TempDir dir;
    const std::string whole = dir / "whole", run = dir / "run", last = std::to_string(kSteps);
    for (const Words& more : {words + Words{"--nproc", "1", "--steps", last, "--out", whole},
                              words + Words{"--nproc", "2", "--steps", "5", "--out", run},
                              Words{"--nproc", "4", "--steps", last, "--resume", run}}) {
      const auto result = lockstep(train_words(more));
      ASSERT_EQ(result.exit_code, 0) << result.err;
    }
    EXPECT_EQ(outcome_of(run), outcome_of(whole));
    EXPECT_NE(outcome_of(whole), outcome_of(finished_run())) << "they act";
  }
}

TEST(Groups, AFilesTablesAreTheOption) {
  const TempDir dir;
  const std::string file = dir / "groups.toml", run = dir / "run";
  std::ofstream(file)
      << "optimizer = \"lars\"\nlr = 0.1\nweight-decay = 0.01\ndecay-all = \"off\"\nema = 0.9\namp = \"O2\"\n"
         "schedule = \"onecycle\"\ncycle-momentum = \"on\"\n"
         "[[param-groups]]\nmatch = \"conv*\"\nlr_scale = 0.1\n"
         "[[param-groups]]\nmatch = \"*.bias\"\nlr = 0.02\nweight_decay = 0.1\n";
  const auto result =
      lockstep(train_words({"--config", file, "--nproc", "1", "--steps", std::to_string(kSteps), "--out", run}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(outcome_of(run), outcome_of(finished_run(kGrouped)));
}

TEST(Groups, AnotherGroupingIsRefusedInOneLine) {
  const std::string& run = finished_run(kGrouped);
  const auto refused = [&run](const Words& words) {
    const auto result = lockstep(train_words(Words{"--resume", run, "--steps", "14"} + words));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    return result.err;
  };
  EXPECT_THAT(refused({"--decay-all", "on"}), HasSubstr("--decay-all"));
  EXPECT_THAT(refused({"--param-groups", "conv*: lr_scale=0.2"}), HasSubstr("--param-groups"));
}

TEST(Groups, APatternForNothingIsAMistake) {
  const TempDir dir;
  const auto result = lockstep(train_words({"--param-groups", "convv1.*: lr_scale=0.2", "--out", dir / "run"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("parameter group convv1.*: matches no parameter; did you mean conv1.*?"));
}

}  // namespace
}  // namespace lockstep::e2e
