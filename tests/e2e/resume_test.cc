// A run that was stopped, however, and goes on with another number of ranks ends as if nothing had happened.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "lockstep/base/text.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kLongSteps = 80;
const Words kLong = {"--epochs", "20", "--eval-every", "20epochs", "--save-every", "20"};

std::string run_on(const Words& words) {
  const auto result = lockstep(train_words(words));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

void expect_as_uninterrupted(const std::string& run, const std::string& reference, int steps) {
  EXPECT_EQ(outcome_of(run), outcome_of(reference));
  EXPECT_EQ(steps_logged(run), first_steps(steps));
}

// The long run, made once, that nothing disturbed.
const std::string& undisturbed() {
  static const TempDir dir;
  static const std::string run = dir / "run";
  static const std::string out = run_on(kLong + Words{"--nproc", "2", "--out", run});
  return run;
}

bool has_logged(const std::string& run, size_t steps) { return steps_logged(run).size() >= steps; }

TEST(Resume, GoesOnInTheMiddleOfEpochsFromARunsFolder) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on({"--nproc", "4", "--steps", "5", "--out", run});
  EXPECT_NE(outcome_of(run), outcome_of(finished_run()));
  run_on({"--nproc", "2", "--steps", "7", "--resume", run});
  EXPECT_EQ(steps_logged(run), first_steps(7));
  run_on({"--nproc", "1", "--steps", std::to_string(kSteps), "--resume", run});
  expect_as_uninterrupted(run, finished_run(), kSteps);
}

TEST(Resume, AWorkerThatNoFrontStartedReadsTheRunsConfigToo) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on({"--steps", "5", "--out", run});
  const auto result = Program({.command = {bin_folder() + "/lockstep-worker", "train", "mnist", "--resume", run,
                                           "--steps", std::to_string(kSteps)}})
                          .wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_as_uninterrupted(run, finished_run(), kSteps);
}

TEST(Resume, GoesOnInMixedPrecisionFromAFile) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on({"--amp", "O1", "--nproc", "1", "--steps", "8", "--out", run});
  run_on({"--amp", "O1", "--nproc", "2", "--steps", std::to_string(kSteps), "--resume", run + "/checkpoints/last.pt"});
  expect_as_uninterrupted(run, finished_run({"--amp", "O1"}), kSteps);
}

TEST(Resume, WithTheOptimizerShardedAndWholeByTurns) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on(kAveraged + Words{"--nproc", "2", "--steps", "5", "--out", run});
  run_on(kAveraged + Words{"--nproc", "4", "--shard-optimizer", "off", "--steps", "7", "--resume", run});
  run_on(kAveraged + Words{"--nproc", "4", "--steps", "9", "--resume", run});
  run_on(kAveraged + Words{"--nproc", "1", "--steps", std::to_string(kSteps), "--resume", run});
  expect_as_uninterrupted(run, finished_run(kAveraged), kSteps);
}

// Lanes and threads come from the checkpoint; its earlier steps and files are then the other run's.
TEST(Resume, FromAnEarlierCheckpointRepeatsWhatCameAfterIt) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on({"--nproc", "2", "--steps", std::to_string(kSteps), "--save-every", "3", "--keep", "10", "--out", run});
  run_on({"--nproc", "4", "--steps", std::to_string(kSteps), "--overwrite", "--resume",
          run + "/checkpoints/step-000006.pt"});
  expect_as_uninterrupted(run, finished_run(), kSteps);
}

// Such as a disk's fault leaves it: the one before is as good.
TEST(Resume, PassesOverADamagedCheckpoint) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on({"--nproc", "2", "--steps", "8", "--save-every", "4", "--out", run});
  fs::resize_file(run + "/checkpoints/step-000008.pt", 100000);
  const std::string out = run_on({"--nproc", "1", "--steps", std::to_string(kSteps), "--resume", run});
  EXPECT_NE(out.find("from epoch 2 step 5\n"), std::string::npos) << out;
  expect_as_uninterrupted(run, finished_run(), kSteps);
}

TEST(Resume, PassesOverADamagedInterruptedState) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on({"--nproc", "2", "--steps", "8", "--save-every", "4", "--out", run});
  write_file(run + "/checkpoints/INTERRUPTED.pt", "junk");
  const auto result = lockstep(train_words({"--steps", std::to_string(kSteps), "--resume", run}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE((result.out + result.err).find("warning: "), std::string::npos) << "it is told of";
  expect_as_uninterrupted(run, finished_run(), kSteps);
}

TEST(Resume, AFinishedRunIsEvaluatedButNotLoggedAgain) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on({"--nproc", "1", "--steps", "8", "--out", run});
  const std::string before = read_file(run + "/metrics.jsonl");
  run_on({"--nproc", "1", "--steps", "8", "--resume", run});
  EXPECT_EQ(read_file(run + "/metrics.jsonl"), before);
}

// What ended between the last checkpoint and the results.
TEST(Resume, TheLastCheckpointStaysAsItIs) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on({"--nproc", "1", "--steps", "8", "--eval-every", "2", "--out", run});
  const std::string last = fs::canonical(run + "/checkpoints/last.pt"), before = read_file(last);
  const auto results = final_of(run);
  fs::remove(run + "/final.json");
  run_on({"--nproc", "1", "--steps", "8", "--resume", run});
  EXPECT_TRUE(read_file(last) == before);
  EXPECT_EQ(final_of(run).at("weights_sha256"), results.at("weights_sha256"));
}

TEST(Resume, AfterCtrlC) {
  const TempDir dir;
  const std::string run = dir / "run";
  Program program(lockstep_command(train_words(kLong + Words{"--nproc", "2", "--out", run})));
  ASSERT_TRUE(eventually([&] { return has_logged(run, 15); }));
  program.signal(SIGINT);
  const auto result = program.wait();
  ASSERT_EQ(result.exit_code, 75) << result.err;
  EXPECT_NE(result.out.find("--resume " + run), std::string::npos) << result.out;
  EXPECT_TRUE(fs::exists(run + "/checkpoints/INTERRUPTED.pt"));
  EXPECT_FALSE(fs::exists(run + "/final.json"));
  const auto done = steps_logged(run);
  EXPECT_LT(done.size(), kLongSteps);
  EXPECT_EQ(done, first_steps(std::ssize(done)));

  const std::string out = run_on(kLong + Words{"--nproc", "4", "--resume", run});
  const std::string place = cat("from epoch ", done.size() / kStepsPerEpoch + 1, " step ", done.size() + 1, '\n');
  EXPECT_NE(out.find(place), std::string::npos) << place << "\n" << out;
  expect_as_uninterrupted(run, undisturbed(), kLongSteps);
  EXPECT_FALSE(fs::exists(run + "/checkpoints/INTERRUPTED.pt"));
}

TEST(Resume, AfterEverythingWasKilled) {
  const TempDir dir;
  const std::string run = dir / "run";
  Program program(lockstep_command(train_words(kLong + Words{"--nproc", "4", "--out", run})));
  ASSERT_TRUE(eventually([&] { return has_logged(run, 25); }));
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  ASSERT_TRUE(program.all_gone(std::chrono::seconds(2)));
  EXPECT_FALSE(fs::exists(run + "/final.json"));

  run_on(kLong + Words{"--nproc", "1", "--resume", run});
  expect_as_uninterrupted(run, undisturbed(), kLongSteps);
}

}  // namespace
}  // namespace lockstep::e2e
