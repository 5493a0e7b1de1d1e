// What the launcher says and does where ranks make no progress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "endless_run.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kUntilTold{40};

bool says(const Program& program, const std::string& text) {
  return eventually([&] { return program.err().find(text) != std::string::npos; }, kUntilTold);
}

// Two ranks of ours under `launch`, whatever their end.
Program::Options launched_endlessly(const std::string& run) {
  const Words launch = {"launch", "--nproc=2", bin_folder() + "/lockstep-worker"};
  return lockstep_command(
      launch + train_words({"--epochs", "1000000", "--eval-every", "0", "--save-every", "0", "--quiet", "--out", run}));
}

TEST(Watch, ARankThatStandsStillIsNamedWithItsStateAndItsStack) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  const pid_t victim = run.worker(1);
  kill(victim, SIGSTOP);
  const std::string pid = std::to_string(victim);
  // Rank 0 is named behind it, or before, where it had not begun to wait when rank 1 was stopped.
  EXPECT_TRUE(says(run.program, cat("rank 1 (pid ", pid, ") is stopped (SIGSTOP; kill -CONT ", pid, ')')))
      << run.program.err();
  EXPECT_THAT(run.program.err(), testing::ContainsRegex("rank 0 .*waiting at "));
  EXPECT_THAT(run.program.err(), HasSubstr("warning: no progress for 1"));
  kill(victim, SIGCONT);
  EXPECT_TRUE(eventually([&] {
    return read_file(run.folder() + "/logs/rank1.log").find("stack, the innermost call first") != std::string::npos;
  }));
  const auto done = steps_logged(run.folder()).size();
  EXPECT_TRUE(eventually([&] { return steps_logged(run.folder()).size() > done; })) << "it goes on";
  run.program.signal(SIGTERM);
  EXPECT_EQ(run.program.wait().exit_code, kExitStoppedOnRequest);
}

TEST(Watch, CtrlBackslashShowsTheStacksOfAllRanks) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  run.program.signal(SIGQUIT);
  for (const char* rank : {"0", "1"}) {
    const std::string log = run.folder() + "/logs/rank" + rank + ".log";
    EXPECT_TRUE(
        eventually([&] { return read_file(log).find("stack, the innermost call first") != std::string::npos; }));
  }
  const auto done = steps_logged(run.folder()).size();
  EXPECT_TRUE(eventually([&] { return steps_logged(run.folder()).size() > done; })) << "they go on";
}

// `launch` passes the signal on.
TEST(Watch, UnderLaunchCtrlBackslashShowsTheStacksOfOurRanksToo) {
  const TempDir dir;
  const std::string run = dir / "run";
  Program program(launched_endlessly(run));
  ASSERT_TRUE(eventually([&] { return steps_logged(run).size() >= 20; })) << program.err();
  program.signal(SIGQUIT);
  for (const char* rank : {"0", "1"}) {
    EXPECT_TRUE(eventually([&] {
      return program.err().find(cat("[rank ", rank, "] stack, the innermost call first")) != std::string::npos;
    })) << program.err();
  }
  const auto done = steps_logged(run).size();
  EXPECT_TRUE(eventually([&] { return steps_logged(run).size() > done; })) << "they go on";
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().exit_code, kExitStoppedOnRequest);
}

TEST(Watch, UnderLaunchARankOfOursThatStandsStillWritesItsStack) {
  const TempDir dir;
  const std::string run = dir / "run";
  Program program(launched_endlessly(run));
  ASSERT_TRUE(eventually([&] { return steps_logged(run).size() >= 20; })) << program.err();
  const auto victim = program.processes("lockstep-worker").at(1);
  kill(victim, SIGSTOP);
  EXPECT_TRUE(says(program, cat("(pid ", victim, ") is stopped (SIGSTOP"))) << program.err();
  kill(victim, SIGCONT);
  EXPECT_TRUE(says(program, "stack, the innermost call first")) << program.err();
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().exit_code, kExitStoppedOnRequest);
}

// Nobody waits for it but the launcher.
TEST(Watch, ALoneRankThatHangsIsEnded) {
  const TempDir dir;
  const std::string run = dir / "run";
  Program program(lockstep_command(train_words({"--nproc", "1", "--epochs", "1000000", "--eval-every", "0",
                                                "--save-every", "0", "--timeout", "1", "--quiet", "--out", run})));
  ASSERT_TRUE(eventually([&] { return steps_logged(run).size() >= 20; })) << program.err();
  signal_to(worker_of(program, 0), SIGSTOP);
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, DesyncError::kExitCode);
  EXPECT_THAT(result.err, AllOf(HasSubstr("\nerror: rank 0 (pid "), HasSubstr(") failed: hung: no progress for 1"),
                                HasSubstr(" s (--timeout); it is stopped (SIGSTOP; kill -CONT ")));
  EXPECT_TRUE(program.all_gone(std::chrono::seconds(2)));
}

TEST(Watch, ARankThatHoldsUpTheOthersIsNamed) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  const pid_t victim = run.worker(1);
  const std::string text = cat("warning: rank 1 (pid ", victim, ") holds up the others: its part of a step takes ");
  bool told = false;
  for (const Stopwatch watch; !told && watch.seconds() < 40;) {  // it runs a fifth of the time
    kill(victim, SIGSTOP);
    usleep(80'000);
    kill(victim, SIGCONT);
    usleep(20'000);
    told = run.program.err().find(text) != std::string::npos;
  }
  EXPECT_TRUE(told) << run.program.err();
  EXPECT_THAT(run.program.err(), ::testing::ContainsRegex("holds up the others: its part of a step takes [0-9.]+ ms, "
                                                          "theirs [0-9.]+ ms; of its time [0-9]+ % is waiting for "
                                                          "data, [0-9]+ % for other ranks, the rest computing"));
}

}  // namespace
}  // namespace lockstep::e2e
