// A run's folder: going back drops nothing unasked, one run has it at a time, and its config.toml says what it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>

#include "digits.h"
#include "endless_run.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/long_test.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kFew = 4;
const Words kShort = {"--threads", "1", "--save-every", "1", "--keep", "9", "--steps", std::to_string(kFew)};

std::string run_on(const Words& words, const std::string& folder = ".") {
  const auto result = lockstep(words, folder);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

// The relative path of each file and link, with what it holds.
std::map<std::string, std::string> contents_of(const std::string& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder);
    if (entry.is_symlink()) {
      contents[name] = fs::read_symlink(entry.path());
    } else if (entry.is_regular_file()) {
      contents[name] = read_file(entry.path());
    }
  }
  return contents;
}

void expect_refused(const Result& result, const std::string& what) {
  expect_one_line(result, ConfigError::kExitCode, what);
}

// A short run in a folder of its own, with a checkpoint of each step.
class RunFolder : public ::testing::Test {
 protected:
  RunFolder() { run_on(train_words(kShort + Words{"--out", run_})); }
  std::string checkpoint(int step) const { return cat(run_, "/checkpoints/step-00000", step, ".pt"); }

  const TempDir dir_;
  const std::string run_ = dir_ / "run";
};

TEST_F(RunFolder, AnOlderCheckpointIsForkedAndItsRunStaysAsItIs) {
  const auto before = contents_of(run_);
  const std::string out = run_on({"train", "--resume", checkpoint(2), "--steps", "4"}, dir_.path());
  EXPECT_THAT(out, AllOf(HasSubstr("train mnist -> runs/mnist-1\n"), HasSubstr("forked      from " + checkpoint(2))));
  EXPECT_EQ(contents_of(run_), before);
  const std::string fork = dir_ / "runs/mnist-1";
  EXPECT_EQ(outcome_of(fork), outcome_of(run_));
  EXPECT_EQ(steps_logged(fork), first_steps(kFew));
  EXPECT_THAT(read_file(fork + "/config.toml"), HasSubstr("parent = '" + checkpoint(2) + "'\n"));
  expect_refused(lockstep({"train", "--resume", checkpoint(2), "--out", fork}), "already holds a run");
  expect_refused(lockstep({"train", "--resume", checkpoint(2), "--out", run_}), "add --overwrite to drop them");
}

TEST_F(RunFolder, OverwritingSaysWhatGoes) {
  const auto whole = outcome_of(run_);
  const std::string out = run_on({"train", "--resume", checkpoint(2), "--overwrite", "--steps", "3", "--lr", "0.5"});
  EXPECT_THAT(out,
              AllOf(HasSubstr("dropped     step-000003.pt, step-000004.pt"),
                    HasSubstr("metrics of steps 3 to 4, final.json\n"), HasSubstr("changed     --lr 0.05 -> 0.5\n")));
  EXPECT_EQ(steps_logged(run_), first_steps(3));
  EXPECT_FALSE(fs::exists(checkpoint(4)));
  EXPECT_NE(outcome_of(run_), whole);
}

TEST_F(RunFolder, OverwritingQuietlySaysItToo) {
  const auto result = lockstep({"train", "--resume", checkpoint(2), "--overwrite", "--quiet", "--steps", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("warning: dropped step-000003.pt, step-000004.pt, "));
}

TEST_F(RunFolder, ItsConfigRepeatsIt) {
  run_on({"train", "--config", run_ + "/config.toml", "--out", dir_ / "again"}, "/");
  EXPECT_EQ(outcome_of(dir_ / "again"), outcome_of(run_));
  EXPECT_EQ(read_file(dir_ / "again/config.toml"), read_file(run_ + "/config.toml"));
}

TEST_F(RunFolder, IsResumedEvaluatedAndInspectedByItsNameAlone) {
  EXPECT_THAT(run_on({"train", "--resume", "run", "--steps", "5"}, dir_.path()), HasSubstr("mnist -> run\n"));
  const auto final = final_of(run_);
  const auto found = nlohmann::json::parse(run_on({"eval", "run", "--json"}, dir_.path()));
  EXPECT_EQ(found.at("accuracy"), final.at("metrics").at("accuracy"));
  EXPECT_EQ(found.at("loss"), final.at("loss"));
  EXPECT_EQ(found.at("samples"), 64);
  EXPECT_EQ(found.at("step"), 5);
  EXPECT_EQ(found.at("file"), "run/checkpoints/step-000005.pt");
  const auto leaves = nlohmann::json::parse(run_on({"inspect", "run", "--json"}, dir_.path()));
  EXPECT_EQ(leaves.at("meta/step").at("value"), 5);
}

// An interrupted state of an earlier step, as a copy of a folder may hold.
TEST_F(RunFolder, AStaleInterruptedStateIsNotTakenByItsName) {
  const std::string stale = run_ + "/checkpoints/INTERRUPTED.pt";
  fs::copy_file(checkpoint(2), stale);
  const auto checkpoints = contents_of(run_ + "/checkpoints");
  const auto outcome = outcome_of(run_);
  expect_refused(lockstep({"train", "--resume", stale, "--steps", "4"}),
                 "INTERRUPTED.pt: of step 2, and the run has a later checkpoint, " + checkpoint(4));
  EXPECT_EQ(contents_of(run_ + "/checkpoints"), checkpoints);
  EXPECT_EQ(steps_logged(run_), first_steps(kFew));
  EXPECT_EQ(outcome_of(run_), outcome);
  EXPECT_EQ(nlohmann::json::parse(run_on({"eval", run_, "--json"})).at("file"), checkpoint(4));
  EXPECT_THAT(run_on({"inspect", run_}), ::testing::StartsWith(checkpoint(4) + "\n"));
  EXPECT_THAT(run_on({"train", "--resume", stale, "--steps", "4", "--out", dir_ / "fork"}),
              HasSubstr("forked      from " + stale));
  EXPECT_EQ(outcome_of(dir_ / "fork"), outcome_of(run_));
}

TEST_F(RunFolder, ADamagedCheckpointIsPassedOverAloud) {
  fs::resize_file(checkpoint(4), 100);
  for (const Words& words : {Words{"eval", run_, "--json"}, Words{"inspect", run_, "--json"}}) {
    const auto result = lockstep(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("warning: " + checkpoint(4)), HasSubstr("; taking " + checkpoint(3))));
  }
}

TEST_F(RunFolder, AnEvaluationOnOtherDataSaysSo) {
  write_digits(dir_ / "other", 50, 20);
  const auto own = lockstep({"eval", run_});
  EXPECT_EQ(own.err, "");
  const auto other = lockstep({"eval", run_, "--data", dir_ / "other"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.err, AllOf(HasSubstr("warning: evaluated on " + (dir_ / "other")), HasSubstr(digits_folder())));
  fs::copy_file(checkpoint(4), dir_ / "lone.pt");
  EXPECT_THAT(lockstep({"eval", "mnist", "--load", dir_ / "lone.pt"}).err,
              HasSubstr("warning: evaluated on data made on the spot, and the run was trained on other data: 100"));
}

class OwnedFolder : public ::testing::Test {
 protected:
  // `first` goes on for hours; the two words of each of the others name the same folder.
  void expect_alone(const Words& first, const Words& program) {
    Program owner({.command = first + kEndless + Words{"--out", run_}});
    ASSERT_TRUE(eventually([&] { return fs::exists(run_ + "/checkpoints/last.pt"); })) << owner.err();
    for (const Words& more : {Words{"--out", run_}, Words{"--resume", run_},
                              Words{"--resume", run_ + "/checkpoints/last.pt", "--overwrite"}}) {
      expect_refused(Program({.command = program + more}).wait(), "a run is under way there (pid ");
    }
    const size_t steps = steps_logged(run_).size();
    EXPECT_TRUE(eventually([&] { return steps_logged(run_).size() > steps; })) << "the owner is not disturbed";
    owner.signal(SIGKILL);
    EXPECT_EQ(owner.wait().exit_code, 128 + SIGKILL);
    const auto resumed = Program({.command = program + Words{"--resume", run_, "--steps", "2"}}).wait();
    EXPECT_EQ(resumed.exit_code, 0) << "at once: " << resumed.err;
    const auto logged = steps_logged(run_);
    EXPECT_EQ(logged, first_steps(std::ssize(logged)));
  }

  const Words kEndless = {"--epochs", "1000000", "--save-every", "5", "--eval-every", "1000000epochs", "--quiet"};
  const TempDir dir_;
  const std::string run_ = dir_ / "run";
};

TEST_F(OwnedFolder, OfTheFront) {
  const Words words = lockstep_command(train_words({"--threads", "1"})).command;
  expect_alone(words, words);
}

TEST_F(OwnedFolder, OfAWorkerThatNoFrontStarted) {
  const Words words = Words{bin_folder() + "/lockstep-worker"} + train_words({"--threads", "1"});
  expect_alone(words, words);
}

// So that a worker that outlives its front for a moment keeps others out.
TEST(OwnedFolders, EveryWorkerHoldsTheLock) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  for (const int rank : {0, 1}) {
    bool holds = false;
    for (const auto& entry : fs::directory_iterator(cat("/proc/", run.worker(rank), "/fd"))) {
      std::error_code gone;
      holds = holds || fs::read_symlink(entry.path(), gone) == fs::canonical(run.folder() + "/lock");
    }
    EXPECT_TRUE(holds) << "rank " << rank;
  }
}

TEST(RemovedFolder, EndsTheRun) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  fs::rename(run.folder(), run.dir / "moved");
  const auto result = run.program.wait();
  EXPECT_EQ(result.exit_code, IoError::kExitCode) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the run's folder was removed or replaced"));
  EXPECT_FALSE(fs::exists(run.folder())) << "it is not made anew";
}

TEST(RemovedFolder, AnothersInItsPlaceIsLeftAlone) {
  EndlessRun run(1);
  ASSERT_TRUE(run.is_training());
  fs::create_directories(run.dir / "other/checkpoints");
  fs::rename(run.folder(), run.dir / "moved");
  fs::rename(run.dir / "other", run.folder());
  EXPECT_EQ(run.program.wait().exit_code, IoError::kExitCode);
  EXPECT_TRUE(contents_of(run.folder()).empty());
}

TEST(Interrupted, TheCommandThatIsPrintedGoesOn) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  const std::string run = dir / "a run";
  Program program(lockstep_command(train_words({"--threads", "1", "--steps", "2000", "--epochs", "500", "--eval-every",
                                                "500epochs", "--save-every", "500epochs", "--out", run})));
  ASSERT_TRUE(eventually([&] { return steps_logged(run).size() >= 3; }));
  program.signal(SIGINT);
  const auto stopped = program.wait();
  ASSERT_EQ(stopped.exit_code, 75) << stopped.err;
  const std::string before = "go on with: ";
  const size_t at = stopped.out.find(before);
  ASSERT_NE(at, std::string::npos) << stopped.out;
  const std::string command = stopped.out.substr(at + before.size(), stopped.out.find('\n', at) - at - before.size());
  EXPECT_EQ(command, "lockstep train mnist --resume '" + run + "' --steps 2000");
  const auto result =
      Program({.command = {"/bin/sh", "-c", bin_folder() + "/" + command}}).wait(std::chrono::seconds(180));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(final_of(run).at("steps"), 2000);
}

}  // namespace
}  // namespace lockstep::e2e
