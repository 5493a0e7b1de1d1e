// Runs in the background, and the commands on runs under way: ps, logs and stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "endless_run.h"
#include "lockstep/base/text.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Detached : public testing::Test {
 protected:
  // Starts runs/a in the background, and returns what the foreground said.
  Result start(const Words& more = {}) {
    foreground_.emplace(
        lockstep_command(train_words({"--nproc", "2", "--out", "runs/a", "--detach"}) + kEndless + more, dir_.path()));
    return foreground_->wait();
  }
  Result command(const Words& words) { return lockstep(words, dir_.path()); }
  nlohmann::json ps(const Words& more = {}) { return nlohmann::json::parse(command(Words{"ps", "--json"} + more).out); }
  pid_t launcher() const {
    const auto all = foreground_->processes("lockstep");
    return all.size() == 1 ? all[0] : -1;
  }
  bool has_logged(size_t steps) const {
    return eventually([&] { return steps_logged(run_).size() >= steps; });
  }

  TempDir dir_;
  std::string run_ = dir_ / "runs/a";
  std::optional<Program> foreground_;
};

TEST_F(Detached, ARunIsSeenFollowedStoppedAndGoesOnToTheSameWeights) {
  const auto told = start();
  ASSERT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out, AllOf(StartsWith(cat("in the background: runs/a, pid ", launcher(), '\n')),
                              HasSubstr("lockstep logs -f runs/a\n"), HasSubstr("lockstep stop runs/a\n")));
  EXPECT_THAT(told.err, AllOf(HasSubstr("lockstep train mnist -> runs/a\n"), HasSubstr("  ranks       2 (shm)")));
  EXPECT_FALSE(steps_logged(run_).empty()) << "it has begun";
  const auto seen = ps();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0]["run"], "runs/a");
  EXPECT_EQ(seen[0]["pid"], launcher());
  EXPECT_EQ(seen[0]["recipe"], "mnist");
  EXPECT_EQ(seen[0]["ranks"], 2);
  EXPECT_TRUE(eventually([&] { return ps()[0]["steps"] == 1000000 * kStepsPerEpoch; })) << "once rank 0's log says it";
  EXPECT_THAT(command({"ps"}).out, AllOf(StartsWith("RUN "), HasSubstr("\nruns/a ")));

  Program follower(lockstep_command({"logs", "-f", "a"}, dir_.path()));
  kill(launcher(), SIGHUP);  // as a terminal that is closed
  ASSERT_TRUE(has_logged(steps_logged(run_).size() + 20)) << "nobody reads along, and it goes on";
  const auto stopped = command({"stop", "a"});
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.out, AllOf(HasSubstr("saved: runs/a/checkpoints/INTERRUPTED.pt\nnext: lockstep train mnist"),
                                 HasSubstr(" --resume runs/a")));
  EXPECT_TRUE(foreground_->all_gone(std::chrono::seconds(5)));
  const auto followed = follower.wait();
  EXPECT_EQ(followed.exit_code, 0) << followed.err;
  EXPECT_THAT(followed.out, AllOf(StartsWith("in the background since "), HasSubstr("\nstopped at step ")));
  EXPECT_EQ(followed.out, read_file(run_ + "/logs/launcher.log"));
  EXPECT_THAT(followed.out, AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\r"))));
  EXPECT_EQ(command({"ps"}).out, "no run is under way in runs/; ps --all lists those that have ended\n");
  EXPECT_EQ(ps({"--all"})[0]["state"], "stopped");

  const std::string steps = std::to_string(steps_logged(run_).size() + 5);
  const auto resumed = command({"train", "--resume", "runs/a", "--steps", steps});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  const auto undisturbed = command(train_words({"--out", "b", "--steps", steps}) + kEndless);
  EXPECT_EQ(undisturbed.exit_code, 0) << undisturbed.err;
  EXPECT_EQ(outcome_of(run_), outcome_of(dir_ / "b"));
  EXPECT_THAT(command({"logs", "a"}).out, Not(HasSubstr("background"))) << "the last start's log";
  EXPECT_EQ(ps({"--all"})[0]["state"], "finished");
}

TEST_F(Detached, OneThatIsKilledLeavesNothingAndIsNoLongerSeen) {
  ASSERT_EQ(start().exit_code, 0);
  ASSERT_TRUE(has_logged(3));
  kill(launcher(), SIGKILL);
  EXPECT_TRUE(foreground_->all_gone(std::chrono::seconds(5)));
  EXPECT_TRUE(eventually([&] { return ps().empty(); }, std::chrono::seconds(2)));
  EXPECT_EQ(ps({"--all"})[0]["state"], "killed");
  const auto stopped = command({"stop", "runs/a"});
  EXPECT_EQ(stopped.exit_code, 2);
  EXPECT_EQ(stopped.err, "error: runs/a: no run is under way there (killed)\n");
}

TEST_F(Detached, AMistakeIsToldAtOnceAndLeavesNothing) {
  auto told = start({"--lr", "x"});
  EXPECT_EQ(told.exit_code, 2);
  EXPECT_EQ(told.err, "error: --lr x: expected a number from 0 to 1000\n");
  EXPECT_FALSE(fs::exists(run_));
  // What the ranks find.
  write_file(dir_ / "train-images-idx3-ubyte", "rubbish");
  foreground_.emplace(lockstep_command(
      {"train", "mnist", "--nproc", "2", "--out", "runs/a", "--detach", "--data", dir_.path()}, dir_.path()));
  told = foreground_->wait();
  EXPECT_THAT(told.exit_code, testing::AnyOf(2, 65)) << told.err;
  EXPECT_THAT(told.err, StartsWith("error: "));
  EXPECT_EQ(told.out, "");
  EXPECT_FALSE(fs::exists(run_));
  EXPECT_TRUE(foreground_->all_gone(std::chrono::seconds(5)));
}

TEST_F(Detached, ASecondOwnerIsRefusedInTheForeground) {
  const auto told = start({"--quiet"});
  ASSERT_EQ(told.exit_code, 0);
  EXPECT_EQ(told.out, "runs/a\n") << "for scripts";
  const auto second = command(train_words({"--nproc", "2", "--out", "runs/a", "--detach"}));
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err, HasSubstr(cat("a run is under way there (pid ", launcher(), " on ")));
}

// A rank that stands still would never come to the end of its step.
// Somebody has stopped a rank (SIGSTOP): it is woken, and the run ends with its checkpoint.
TEST_F(Detached, AStoppedRankHearsOfTheStop) {
  ASSERT_EQ(start().exit_code, 0);
  ASSERT_TRUE(has_logged(3));
  signal_to(worker_of(*foreground_, 1), SIGSTOP);
  const auto stopped = command({"stop", "a"});
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("INTERRUPTED.pt"));
}

TEST_F(Detached, StopNowDoesNotWaitForASave) {
  ASSERT_EQ(start().exit_code, 0);
  ASSERT_TRUE(has_logged(3));
  const Held rank(worker_of(*foreground_, 1));
  const auto late = command({"stop", "a", "--timeout", "1.5"});
  EXPECT_EQ(late.exit_code, 69);
  EXPECT_THAT(late.err, HasSubstr("was asked to stop and has not ended in 1.5 s"));
  const auto stopped = command({"stop", "a", "--now"});
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.out, StartsWith("runs/a: "));
  EXPECT_TRUE(foreground_->all_gone(std::chrono::seconds(5)));
}

TEST_F(Detached, AReaderOfTheLogThatLeavesEndsItQuietly) {
  ASSERT_EQ(start().exit_code, 0);
  const auto head = Program({.command = {"/bin/bash", "-c",
                                         cat("set -o pipefail; ", bin_folder(), "/lockstep logs -f a | head -n 1")},
                             .folder = dir_.path()})
                        .wait();
  EXPECT_LT(head.seconds, 3) << "and not only with the next line";
  EXPECT_EQ(head.exit_code, 0);
  EXPECT_EQ(head.err, "");
  EXPECT_THAT(head.out, StartsWith("in the background since "));
}

// Also those that nobody has sent to the background.
TEST_F(Detached, RunsOfTheForegroundAreSeenAndStopped) {
  Program run(lockstep_command(train_words({"--nproc", "2", "--out", "runs/b"}) + kEndless, dir_.path()));
  ASSERT_TRUE(eventually([&] { return steps_logged(dir_ / "runs/b").size() >= 3; }));
  EXPECT_EQ(ps()[0]["run"], "runs/b");
  EXPECT_THAT(command({"logs", "b", "--lines", "1"}).out, StartsWith("epoch 1/1000000 "));
  // What a rank has to say, which all but rank 0 do in need alone.
  std::ofstream(dir_ / "runs/b/logs/rank1.log", std::ios::app) << "a line of rank 1\n";
  EXPECT_THAT(command({"logs", "b", "--rank", "1"}).out, HasSubstr("a line of rank 1\n"));
  EXPECT_EQ(command({"logs", "b", "--rank", "2"}).exit_code, 2);
  EXPECT_THAT(command({"stop", "b"}).out, HasSubstr("INTERRUPTED.pt"));
  EXPECT_EQ(run.wait().exit_code, 75);
}

TEST_F(Detached, OtherPlacesAreNamed) {
  fs::create_directories(dir_ / "runs/notes");
  for (const char* name : {"ps", "logs", "stop"}) {
    const auto result = command({name, "runs/notes"});
    EXPECT_EQ(result.exit_code, 2) << name;
    EXPECT_THAT(result.err, StartsWith("error: runs/notes: "));
    EXPECT_EQ(command({name, "nowhere"}).exit_code, 2) << name;
  }
}

// It ends with the job's command, which a run in the background would not outlive.
TEST_F(Detached, AJobOfSlurmIsRefused) {
  const auto result = Program({.command = Words{"/usr/bin/env", "SLURM_JOB_ID=4711", "SLURM_CLUSTER_NAME=alps",
                                                bin_folder() + "/lockstep"} +
                                          train_words({"--detach", "--nproc", "2", "--out", run_}),
                               .folder = dir_.path()})
                          .wait();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, StartsWith("error: --detach: this is a process of slurm 4711"));
}

}  // namespace
}  // namespace lockstep::e2e
