#include "lockstep/launch/runs/stop_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/stop_request.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::refusal;

class StopRun : public testing::Test {
 protected:
  void TearDown() override {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  // A process that holds the lock, and ends at the nth SIGTERM.
  void start_owner(int signals) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    child_ = fork();
    if (child_ == 0) {
      sigset_t term;
      sigemptyset(&term);
      sigaddset(&term, SIGTERM);
      sigprocmask(SIG_BLOCK, &term, nullptr);
      const auto lock = train::RunLock::take(dir_.path(), "--out a");
      if (write(ready[1], "x", 1) != 1) _exit(1);
      for (int number = 0; signals-- > 0;) sigwait(&term, &number);
      _exit(75);
    }
    char byte = 0;
    close(ready[1]);
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  RunFacts stop(bool now = false, std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    return stop_run(dir_.path(), {.now = now, .timeout = timeout}, [this](const auto& line) { told_ += line; });
  }

  testing_support::TempDir dir_;
  pid_t child_ = -1;
  std::string told_;
};

TEST_F(StopRun, WaitsForTheOwnersEnd) {
  start_owner(1);
  stop();
  EXPECT_FALSE(train::owner_of(dir_.path()).held);
}

TEST_F(StopRun, NowAsksTwice) {
  start_owner(2);
  stop(/*now=*/true);
  EXPECT_FALSE(train::owner_of(dir_.path()).held);
}

TEST_F(StopRun, AnOwnerThatIsStoppedGoesOn) {
  start_owner(1);
  kill(child_, SIGSTOP);
  waitpid(child_, nullptr, WUNTRACED);
  stop();
  EXPECT_FALSE(train::owner_of(dir_.path()).held);
}

TEST_F(StopRun, OneThatDoesNotEndIsNamed) {
  start_owner(1000);
  try {
    stop(false, std::chrono::milliseconds(1500));
    ADD_FAILURE() << "it has not ended";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(cat("pid ", child_, " was asked to stop and has not ended in 1.5 s")),
                                    HasSubstr("stop --now")));
  }
  EXPECT_THAT(told_, HasSubstr("to end its step and save"));
}

TEST_F(StopRun, WhatIsNotUnderWayIsRefused) {
  EXPECT_THROW(stop(), ConfigError);
  std::ofstream(dir_ / "metrics.jsonl") << "";
  std::ofstream(dir_ / "final.json") << "{}";
  EXPECT_EQ(refusal([&] { stop(); }), dir_.path() + ": no run is under way there (finished)");
}

// The lock is held, and what it says of its owner is of another time or place.
TEST_F(StopRun, AnotherProcessIsNotSignalled) {
  const auto lock = train::RunLock::take(dir_.path(), "--out a");
  const pid_t other = fork();
  if (other == 0) {
    close(lock.descriptor());
    for (;;) pause();
  }
  while (train::has_lock_open(other, dir_.path()) != false) usleep(1000);
  std::ofstream(dir_ / "lock") << "pid " << other << " on " << host_name() << "\nend\n";
  EXPECT_THAT(refusal([&] { stop(); }), HasSubstr(cat("its lock names pid ", other, ", which here is none")));
  std::ofstream(dir_ / "lock") << "pid " << other << " on another-host\nend\n";
  EXPECT_THAT(refusal([&] { stop(); }), HasSubstr(cat("pid ", other, " on another-host; type there: lockstep stop /")));
  std::ofstream(dir_ / "lock") << "";
  EXPECT_THAT(refusal([&] { stop(); }), HasSubstr("its lock is held and names no process"));
  EXPECT_EQ(waitpid(other, nullptr, WNOHANG), 0) << "it lives";
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST(StoppedText, SaysWhatIsSavedAndHowToGoOn) {
  RunFacts run{.folder = "runs/a", .state = RunState::kStopped, .last = {.step = 7}};
  const std::string saved = "runs/a: stopped at step 7; saved: runs/a/checkpoints/INTERRUPTED.pt\nnext: ";
  const std::string file = "runs/a/checkpoints/INTERRUPTED.pt",
                    command = "lockstep train unet --resume runs/a --steps 9";
  EXPECT_EQ(stopped_text(run, file, command), saved + command + "\n");
  EXPECT_EQ(stopped_text(run, file, ""), saved + "lockstep train --resume runs/a\n");
  run.state = RunState::kKilled;
  EXPECT_EQ(stopped_text(run, "", command), "runs/a: killed at step 7; no checkpoint is saved\n");
  EXPECT_EQ(stopped_text(run, "b.pt", command),
            "runs/a: killed at step 7; saved: b.pt\nnext: lockstep train --resume runs/a\n")
      << "the log's is of an earlier stop";
  run.state = RunState::kNotBegun, run.last.step = 0;
  EXPECT_EQ(stopped_text(run, "", ""), "runs/a: not begun; no checkpoint is saved\n");
  run.state = RunState::kFinished, run.last.step = 7;
  EXPECT_EQ(stopped_text(run, file, command), "runs/a: finished at step 7, before the request\n");
}

TEST(StoppedText, TheCommandIsTheLogsLast) {
  EXPECT_EQ(resume_command_in("x"), "");
  EXPECT_EQ(resume_command_in("stopped at 1; go on with: a b\nepoch 2\nstopped at 2; go on with: c d\nbye\n"), "c d");
  EXPECT_EQ(resume_command_in("stopped; go on with: c"), "c");
}

}  // namespace
}  // namespace lockstep::launch
