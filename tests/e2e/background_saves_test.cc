// Checkpoints that are written while training goes on, and snapshots that outlive their ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>

#include "endless_run.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/long_test.h"
#include "program.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// The checkpoints of a run, by their names.
std::map<std::string, std::string> files_of(const std::string& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(run + "/checkpoints")) {
    if (!entry.is_symlink()) files[entry.path().filename().string()] = read_file(entry.path().string());
  }
  return files;
}

Program::Options preloaded(const Words& words) {
  Program::Options options = lockstep_command(words);
  const Words preload = {"/usr/bin/env", "LD_PRELOAD=" + bin_folder() + "/failing_disk.so"};
  options.command.insert(options.command.begin(), preload.begin(), preload.end());
  return options;
}

class BackgroundSaves : public ::testing::TestWithParam<Words> {};

// The same step is the same file, whoever has saved it.
TEST_P(BackgroundSaves, TheFileIsTheSameAtAnyNumberOfRanks) {
  LOCKSTEP_LONG_TEST_IF(GetParam() == kAveraged);
  const TempDir dir;
  const Words words = Words{"--steps", "7", "--save-every", "2", "--keep", "9", "--snapshot-every"} + Words{"1"};
  std::map<std::string, std::string> expected;
  for (const char* background : {"off", "on"}) {
    for (const char* nproc : {"1", "2", "4"}) {
      const bool off = std::string(background) == "off";
      const std::string run = dir / cat(background, nproc);
      const Words more = Words{"--nproc", nproc, "--background-saves", background, "--out", run};
      const Words given = off ? Words{"--steps", "7", "--save-every", "2", "--keep", "9"} : words;
      const auto result = lockstep(train_words(given + more + GetParam()));
      ASSERT_EQ(result.exit_code, 0) << result.err;
      const auto files = files_of(run);
      EXPECT_EQ(files.size(), 4U) << run;  // 2, 4, 6, 7; the epoch's end is the best
      if (expected.empty()) expected = files;
      for (const auto& [name, bytes] : expected) {
        EXPECT_TRUE(files.contains(name) && files.at(name) == bytes) << run << ' ' << name;
      }
      EXPECT_EQ(fs::read_symlink(run + "/checkpoints/last.pt"), "step-000007.pt");
      EXPECT_TRUE(fs::exists(run + "/checkpoints/best.pt"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, BackgroundSaves,
                         ::testing::Values(Words{}, kAveraged, Words{"--amp", "O2", "--dtype", "bf16"}));

// Another launcher started the rank: a thread of its own writes.
TEST(BackgroundSavesAlone, AreTheSameFiles) {
  const TempDir dir;
  const Words words = train_words({"--steps", "7", "--save-every", "2", "--keep", "9"});
  ASSERT_EQ(lockstep(words + Words{"--nproc", "1", "--background-saves", "off", "--out", dir / "off"}).exit_code, 0);
  Program alone({.command = Words{bin_folder() + "/lockstep-worker"} + words + Words{"--out", dir / "on"}});
  const auto result = alone.wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(files_of(dir / "on") == files_of(dir / "off"));
}

TEST(BackgroundSavesOnASlowDisk, TrainingGoesOnAndTheFileIsThatStepsOwn) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer comes before every library";
  const TempDir dir;
  fs::create_directory(dir / "slow_disk");
  const Words words = train_words({"--nproc", "2", "--steps", "6", "--save-every", "3", "--eval-every", "0"});
  ASSERT_EQ(lockstep(words + Words{"--background-saves", "off", "--out", dir / "run"}).exit_code, 0);
  const std::string run = dir / "slow_disk/run";
  Program program(preloaded(words + Words{"--snapshot-every", "1", "--out", run}));
  EXPECT_TRUE(eventually([&] { return steps_logged(run).size() == 6; })) << program.err();
  EXPECT_FALSE(fs::exists(run + "/checkpoints/step-000003.pt")) << "the disk was not slow";
  const auto result = program.wait(std::chrono::seconds(200));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(files_of(run) == files_of(dir / "run"));
}

class HeldDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer comes before every library";
    fs::create_directory(dir_ / "held_disk");
  }
  void start(const Words& more) {
    program_.emplace(preloaded(train_words(
        Words{"--nproc", "2", "--epochs", "1000000", "--eval-every", "1000000epochs", "--quiet", "--out", run_} +
        more)));
  }
  // Waits until the first checkpoint stands before its fsync, and training has gone on.
  bool is_held() {
    start({"--save-every", "5"});
    return eventually([this] { return fs::exists(first_ + ".tmp") && steps_logged(run_).size() >= 8; });
  }

  const TempDir dir_;
  const std::string run_ = dir_ / "held_disk/run", first_ = run_ + "/checkpoints/step-000005.pt";
  std::optional<Program> program_;
};

TEST_F(HeldDisk, TheLauncherFinishesTheFileOfAKilledRank) {
  ASSERT_TRUE(is_held()) << program_->err();
  signal_to(worker_of(*program_, 0), SIGKILL);
  EXPECT_TRUE(eventually([&] { return program_->processes("lockstep-worker").empty(); }));
  EXPECT_FALSE(fs::exists(first_));
  write_file(dir_ / "held_disk/go", "");
  const auto result = program_->wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.err, HasSubstr("\n  saved: checkpoint " + run_ + "/checkpoints/step-000"));
  EXPECT_TRUE(fs::exists(first_));
  EXPECT_EQ(lockstep({"inspect", first_}).exit_code, 0);
}

// While the disk holds the file of step 40, the snapshot of step 50 is left out: the other slot is for the next save.
TEST_F(HeldDisk, SnapshotsAreHalfAsMany) {
  start({"--save-every", "40", "--snapshot-every", "50"});
  ASSERT_TRUE(eventually([this] { return steps_logged(run_).size() >= 52; })) << program_->err();
  signal_to(worker_of(*program_, 0), SIGKILL);
  EXPECT_TRUE(eventually([&] { return program_->processes("lockstep-worker").empty(); }));
  write_file(dir_ / "held_disk/go", "");
  EXPECT_EQ(program_->wait().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(fs::exists(run_ + "/checkpoints/step-000040.pt"));
  EXPECT_FALSE(fs::exists(run_ + "/checkpoints/step-000050.pt"));
}

TEST_F(HeldDisk, AKilledLauncherLeavesATemporaryFileWhichTheNextStartRemoves) {
  ASSERT_TRUE(is_held()) << program_->err();
  program_->signal(SIGKILL);
  program_->wait();
  EXPECT_TRUE(program_->all_gone(std::chrono::seconds(2)));
  EXPECT_FALSE(fs::exists(first_));
  EXPECT_TRUE(fs::exists(first_ + ".tmp"));
  const auto again = lockstep(train_words({"--steps", "2", "--overwrite", "--out", run_}));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_FALSE(fs::exists(first_ + ".tmp"));
}

const Words kLong = {"--steps", "400", "--epochs", "100", "--save-every", "100epochs", "--eval-every", "100epochs"};

class SnapshotOfAKilledRun : public ::testing::TestWithParam<int> {};

TEST_P(SnapshotOfAKilledRun, GoesOnToTheWeightsOfOneThatWasNot) {
  LOCKSTEP_LONG_TEST_IF(GetParam() == 1);
  static const TempDir whole;
  if (!fs::exists(whole / "run")) {
    ASSERT_EQ(lockstep(train_words(kLong + Words{"--nproc", "1", "--out", whole / "run"} + kAveraged)).exit_code, 0);
  }
  const TempDir dir;
  const std::string run = dir / "run";
  Program program(
      lockstep_command(train_words(kLong + Words{"--nproc", "2", "--snapshot-every", "5", "--out", run} + kAveraged)));
  ASSERT_TRUE(eventually([&] { return steps_logged(run).size() > 30; })) << program.err();
  std::vector<pid_t> workers = program.processes("lockstep-worker");
  ASSERT_EQ(workers.size(), 2U);
  workers.resize(static_cast<size_t>(GetParam()));
  for (const pid_t worker : workers) kill(worker, SIGKILL);
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.err, HasSubstr("\n  saved: snapshot of step "));
  EXPECT_THAT(result.err, HasSubstr("\n  next: lockstep train mnist --resume "));
  ASSERT_EQ(files_of(run).size(), 1U);
  EXPECT_THAT(files_of(run).begin()->first, ::testing::MatchesRegex("step-000[0-9][0-9][05].pt"));
  const auto resumed = lockstep({"train", "--resume", run, "--steps", "400"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("resumed     " + run + "/checkpoints/step-000"));
  EXPECT_EQ(steps_logged(run), first_steps(400));
  EXPECT_EQ(outcome_of(run), outcome_of(whole / "run"));
}

INSTANTIATE_TEST_SUITE_P(Ranks, SnapshotOfAKilledRun, ::testing::Values(1, 2));

class FailedSaves : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  FailedSaves() { fs::create_directory(dir_ / disk_); }
  Result train(const Words& words) const {
    return Program(preloaded(train_words(words + Words{"--nproc", "2", "--eval-every", "0", "--background-saves",
                                                       std::get<1>(GetParam()), "--out", run_})))
        .wait();
  }
  static int warnings(const Result& result) {
    int count = 0;
    const std::string part = "a checkpoint was not saved";  // and training goes on, unless it was over
    for (size_t at = result.err.find(part); at != std::string::npos; at = result.err.find(part, at + 1)) ++count;
    return count;
  }

  const TempDir dir_;
  const std::string disk_ = std::get<0>(GetParam()), run_ = dir_ / (disk_ + "/run");
  const bool full_ = disk_ == "full_disk";
};

TEST_P(FailedSaves, AreWarnedOfUntilTheThirdInARow) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer comes before every library";
  const auto result = train({"--steps", "40", "--save-every", "5"});
  EXPECT_EQ(result.exit_code, IoError::kExitCode) << result.err;
  EXPECT_EQ(warnings(result), 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr(run_ + "/checkpoints/step-000005.pt: can't " +
                                    (full_ ? "write beyond " : "be brought to the disk: ")));
  EXPECT_THAT(result.err, HasSubstr(full_ ? "No space left on device" : "Input/output error"));
  EXPECT_THAT(result.err, HasSubstr("3 checkpoints in a row were not saved"));
  EXPECT_TRUE(files_of(run_).empty());
  EXPECT_GE(steps_logged(run_).size(), 15U);
  EXPECT_LT(steps_logged(run_).size(), 40U);
}

TEST_P(FailedSaves, TheLastOneIsAnError) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer comes before every library";
  const auto result = train({"--steps", "8", "--save-every", "5"});
  EXPECT_EQ(result.exit_code, IoError::kExitCode) << result.err;
  EXPECT_EQ(warnings(result), 1) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr(full_ ? "step-000008.pt: can't write beyond " : "step-000008.pt: can't be brought"));
  EXPECT_EQ(steps_logged(run_), first_steps(8));
}

// Somebody makes room while what a killed run had in memory waits for it.
TEST(SnapshotOnAFullDisk, IsTriedAgainBeforeTheRunGoesOn) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer comes before every library";
  const TempDir dir;
  const std::string run = dir / "full_disk/run";
  fs::create_directory(dir / "full_disk");
  Program program(preloaded(
      train_words({"--nproc", "2", "--steps", "400", "--epochs", "1000000", "--save-every", "1000000epochs",
                   "--eval-every", "1000000epochs", "--snapshot-every", "5", "--max-restarts", "1", "--out", run})));
  ASSERT_TRUE(eventually([&] { return steps_logged(run).size() > 30; })) << program.err();
  signal_to(worker_of(program, 1), SIGKILL);
  ASSERT_TRUE(eventually([&] { return program.err().find("trying again for at most") != std::string::npos; }))
      << program.err();
  EXPECT_THAT(program.err(), HasSubstr("warning: the newest snapshot is not saved yet: "));
  EXPECT_THAT(program.err(), HasSubstr("No space left on device"));
  write_file(dir / "full_disk/room", "");
  const auto result = program.wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("saved: snapshot of step "));
  EXPECT_THAT(result.err, Not(HasSubstr("was not saved")));
  EXPECT_THAT(result.out, HasSubstr("restart 1: goes on after step "));
  EXPECT_THAT(result.out, HasSubstr(run + "/checkpoints/step-000"));
  EXPECT_EQ(steps_logged(run), first_steps(400));
}

INSTANTIATE_TEST_SUITE_P(BackgroundSaves, FailedSaves,
                         ::testing::Combine(::testing::Values("full_disk", "unsynced_disk"),
                                            ::testing::Values("on", "off")));

// --save-every by the clock.
TEST(TimedSaves, ComeEverySecond) {
  const TempDir dir;
  const std::string run = dir / "run";
  Program program(lockstep_command(train_words({"--nproc", "2", "--epochs", "1000000", "--save-every", "1s", "--keep",
                                                "100", "--eval-every", "1000000epochs", "--quiet", "--out", run})));
  ASSERT_TRUE(eventually([&] { return fs::exists(run + "/checkpoints") && files_of(run).size() >= 3; }))
      << program.err();
  program.signal(SIGTERM);
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, kExitStoppedOnRequest);
  EXPECT_LT(static_cast<double>(files_of(run).size()), result.seconds + 1) << "and that of the stop";
}

class Grace : public ::testing::TestWithParam<bool> {};

TEST_P(Grace, AnEndThatComesTooLateSavesTheNewestSnapshot) {
  const TempDir dir;
  const std::string run = dir / "run";
  const Words train = train_words({"--epochs", "1000000", "--save-every", "1000000epochs", "--eval-every",
                                   "1000000epochs", "--snapshot-every", "1", "--quiet", "--out", run});
  const Words launch = {"launch", "--nproc=2", "--grace=1.5", bin_folder() + "/lockstep-worker"};
  const bool by_launch = GetParam();
  Program program(lockstep_command(by_launch ? launch + train : train + Words{"--nproc", "2", "--grace", "1.5"}));
  ASSERT_TRUE(eventually([&] { return steps_logged(run).size() >= 5; })) << program.err();
  const Held rank(worker_of(program, 1));  // it would never come to the end of its step
  program.signal(SIGTERM);
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, kExitStoppedOnRequest) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the grace of 1.5 s was too short for a checkpoint; saved: snapshot of step "));
  EXPECT_EQ(files_of(run).size(), 1U);
  EXPECT_TRUE(program.all_gone(std::chrono::seconds(5)));
}

INSTANTIATE_TEST_SUITE_P(Of, Grace, ::testing::Values(false, true),
                         [](const auto& each) { return each.param ? "Launch" : "Train"; });

}  // namespace
}  // namespace lockstep::e2e
