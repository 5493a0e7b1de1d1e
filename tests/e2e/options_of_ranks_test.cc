// Ranks of one run whose lines differ, as where each node has a script of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two ranks; what `of_first` and `of_second` say is theirs alone, and the shell's `first` is done before.
Result train_with(const std::string& of_first, const std::string& of_second, const std::string& run,
                  const std::string& first = "") {
  std::string line = cat(first, " exec ", bin_folder(), "/lockstep-worker");
  for (const std::string& word : train_words({"--steps", "4", "--out", run})) line += ' ' + word;
  line += cat(" $([ $RANK = 0 ] && echo ' ", of_first, "' || echo ' ", of_second, "')");
  return lockstep({"launch", "--nproc-per-node", "2", "/bin/sh", "-c", line});
}

struct Pair {
  std::string name, of_first, of_second, said;
};

class OptionsOfRanks : public ::testing::TestWithParam<Pair> {};

TEST_P(OptionsOfRanks, AreToldApartBeforeTheFirstStep) {
  const TempDir dir;
  const Pair& pair = GetParam();
  const Result result = train_with(pair.of_first, pair.of_second, dir / "run");
  EXPECT_EQ(result.exit_code, ConfigError::kExitCode) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the ranks have different options: rank 1 has " + pair.said));
  EXPECT_TRUE(steps_logged(dir / "run").empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, OptionsOfRanks,
    ::testing::Values(
        Pair{"Rate", "--lr 0.01", "--lr 0.02", "--lr 0.02 where rank 0 has --lr 0.01"},
        Pair{"Loss", "--loss mse", "--loss cross-entropy", "--loss cross-entropy where rank 0 has --loss mse"},
        Pair{"Augment", "", "--augment standard", "--augment standard where rank 0 has --augment none"},
        Pair{"Precision", "--amp O0", "--amp O1", "--amp O1 where rank 0 has --amp O0"},
        Pair{"Clip", "", "--clip 1", "--clip 1 where rank 0 has --clip 0"},
        Pair{"Optimizer", "--optimizer sgd", "--optimizer adam", "--optimizer adam where rank 0 has --optimizer sgd"},
        Pair{"SyncBatchNorm", "", "--sync-bn", "--sync-bn true where rank 0 has --sync-bn false"},
        Pair{"Evaluations", "--eval-every 2", "--eval-every 3",
             "--eval-every 3steps where rank 0 has --eval-every 2steps"},
        Pair{"Saves", "--save-every 2", "--save-every 3", "--save-every 3steps where rank 0 has --save-every 2steps"},
        Pair{"Seed", "--seed 1", "--seed 2", "--seed 2 where rank 0 has --seed 1"}),
    [](const auto& info) { return info.param.name; });

TEST(OptionsThatMayDiffer, AreARanksOwn) {
  const TempDir dir;
  const Result result = train_with("--workers 1", "--workers 2 --quiet", dir / "run");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(OptionsThatMayDiffer, AFileThatOneRankLoadsIsToldApart) {
  const TempDir dir;
  const std::string load = cat("--load ", finished_run(), "/checkpoints/last.pt");
  const Result result = train_with("", load, dir / "run");
  EXPECT_EQ(result.exit_code, ConfigError::kExitCode) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1 has --load PATH where rank 0 has no --load"));
}

// Nodes with other numbers of cores: all take the threads that the least of them has.
TEST(OptionsThatMayDiffer, ThreadsAreThoseOfTheLeastNode) {
  const TempDir dir;
  const Result plain = train_with("", "", dir / "plain");
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const Result result = train_with("", "", dir / "run", "[ $RANK = 0 ] && export LOCKSTEP_NODE_CORES=16;");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(final_of(dir / "run")["weights_sha256"], final_of(dir / "plain")["weights_sha256"]);
  EXPECT_THAT(read_file(dir / "run/config.toml"), HasSubstr("threads = 1\n"));
}

TEST(OptionsThatMayDiffer, ThreadsThatAreAskedForAreToldApart) {
  const TempDir dir;
  const Result result = train_with("--threads 1", "--threads 2", dir / "run");
  EXPECT_EQ(result.exit_code, ConfigError::kExitCode) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1 has --threads 2 where rank 0 has --threads 1"));
}

// Each of its ranks would train alone.
TEST(Train, IsNoProgramOfALauncher) {
  const TempDir dir;
  const Words train = Words{bin_folder() + "/lockstep"} + train_words({"--out", dir / "run"});
  const Result result = lockstep(Words{"launch", "--nproc-per-node", "2"} + train);
  EXPECT_EQ(result.exit_code, ConfigError::kExitCode) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("this is one of 2 ranks that lockstep launch has started"),
                                HasSubstr("launch lockstep-worker train")));
  EXPECT_FALSE(std::filesystem::exists(dir / "run"));
}

// As in a search over options, each rank of which trains on its own.
TEST(Train, IsAProgramOfALauncherThatSaysItsRanks) {
  const TempDir dir;
  std::string line = cat("exec ", bin_folder(), "/lockstep");
  for (const std::string& word : train_words({"--steps", "2", "--nproc", "1"})) line += ' ' + word;
  line += cat(" --out ", dir.path(), "/run$RANK");
  const Result result = lockstep({"launch", "--nproc-per-node", "2", "/bin/sh", "-c", line});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* run : {"run0", "run1"}) EXPECT_EQ(final_of(dir / run)["steps"], 2) << run;
}

}  // namespace
}  // namespace lockstep::e2e
