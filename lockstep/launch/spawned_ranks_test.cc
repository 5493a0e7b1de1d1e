#include "lockstep/launch/spawned_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/launch/environment.h"
#include "lockstep/launch/testing/alive.h"

namespace lockstep::launch {
namespace {

using testing::MatchesRegex;

SpawnRequest shell(const std::string& script) {
  return {.command = {"sh", "-c", script}, .environment = own_environment(), .program = "/bin/sh", .piped = false};
}

std::string failure_of(const std::string& script) {
  SpawnedRanks ranks(shell(script), 3);
  try {
    ranks.wait();
  } catch (const Error& error) {
    return cat(error.what(), ", code ", error.exit_code());
  }
  return "";
}

TEST(SpawnedRanks, KnowTheirPlace) {
  EXPECT_EQ(failure_of("test $WORLD_SIZE = 3 -a $RANK -lt 3 -a -n \"$LOCKSTEP_NODE_MEMORY\" -a -n \"$MASTER_PORT\""),
            "");
}

TEST(SpawnedRanks, TheFirstFailureIsTold) {
  EXPECT_THAT(failure_of("test $RANK = 2 && exit 7; sleep 600"),
              MatchesRegex("spawn: rank 2 \\(pid [0-9]+\\) exited with code 7, code 7"));
  EXPECT_THAT(failure_of("test $RANK = 1 && kill -9 $$; sleep 600"),
              MatchesRegex("spawn: rank 1 \\(pid [0-9]+\\) was killed by SIGKILL, code 137"));
}

// Rank 0 saves until the file `go` is there; rank 1 dies meanwhile.
SpawnRequest saver(const std::string& go) {
  return {.command = {"board_worker", "save", go},
          .environment = own_environment(),
          .program = LOCKSTEP_BIN_DIR "/lockstep_launch_board_worker",
          .piped = false};
}

TEST(SpawnedRanks, OneThatSavesIsLetFinish) {
  const testing_support::TempDir dir;
  const std::string go = dir / "go";
  SpawnedRanks ranks(saver(go), 2);
  EXPECT_TRUE(gone_within({ranks.pids()[1]}, 10));
  usleep(1'500'000);  // longer than ranks get that do not save
  std::ofstream(go) << "on";
  EXPECT_THROW(ranks.wait(), Error);
  EXPECT_TRUE(std::ifstream(go + ".saved").is_open());
}

TEST(SpawnedRanks, TerminateDoesNotWaitForASave) {
  const testing_support::TempDir dir;
  SpawnedRanks ranks(saver(dir / "go"), 2);
  const auto pids = ranks.pids();
  EXPECT_TRUE(gone_within({pids[1]}, 10));
  usleep(600'000);  // rank 0 is waited for
  EXPECT_TRUE(alive(pids[0]));
  const Stopwatch watch;
  ranks.terminate();
  EXPECT_LT(watch.seconds(), 10);
  EXPECT_FALSE(alive(pids[0]));
}

// A shell says nothing on the board, as a rank of spawn() does at its end.
TEST(SpawnedRanks, AProgramThatIgnoresSigchldLearnsOfTheirEndsAllTheSame) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  EXPECT_THAT(failure_of("exit 0"), testing::HasSubstr("took its exit status"));
  ::signal(SIGCHLD, before);
}

TEST(SpawnedRanks, AStopOnRequestIsNoFailure) { EXPECT_EQ(failure_of("exit 75"), ""); }

TEST(SpawnedRanks, TerminateEndsThoseThatDontListen) {
  SpawnedRanks ranks(shell("trap '' TERM; while :; do sleep 0.05; done"), 2);
  const auto pids = ranks.pids();
  EXPECT_TRUE(alive(pids[0]) && alive(pids[1]));
  const Stopwatch watch;
  ranks.terminate();
  EXPECT_LT(watch.seconds(), 5);
  EXPECT_TRUE(gone_within(pids, 0.1));
  ranks.wait();  // says nothing: they were asked to end
}

TEST(SpawnedRanks, AProgramThatIsNotThereIsAnErrorAtOnce) {
  SpawnRequest request = shell("");
  request.program = "/no/such/program";
  EXPECT_THROW(SpawnedRanks(request, 2), ConfigError);
}

}  // namespace
}  // namespace lockstep::launch
