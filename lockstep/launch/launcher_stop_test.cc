// Ranks that are asked to stop, by signals or through the board.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/launch/testing/alive.h"
#include "lockstep/launch/testing/launcher_fixture.h"

namespace lockstep::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Options = Launcher::Options;

TEST_F(LauncherTest, SignalsArePassedOn) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::filesystem::remove_all(folder_ + "/pids");
    std::filesystem::create_directories(folder_ + "/pids");
    Options options = shell(2, "echo $$ >$FOLDER/pids/$RANK; exec sleep 100");
    options.stop_by = Launcher::StopBy::kSignal;
    const int code = run(options, [&](pid_t front) {
      pids(2);
      kill(front, signal);
    });
    EXPECT_EQ(code, 128 + signal);
    EXPECT_TRUE(gone_within(pids(2), 0.1));
  }
  EXPECT_EQ(err(), "") << "who asks for an end needs no report of it";
}

TEST_F(LauncherTest, AProgramThatEndsWellOnASignalIsNoFailure) {
  Options options = shell(2, "trap 'exit 0' TERM; echo $$ >$FOLDER/pids/$RANK; while :; do sleep 0.01; done");
  options.stop_by = Launcher::StopBy::kSignal;
  EXPECT_EQ(run(options,
                [&](pid_t front) {
                  pids(2);
                  kill(front, SIGTERM);
                }),
            0);
}

// One that fails instead of stopping leaves others behind, which may wait for it for ever.
TEST_F(LauncherTest, AfterASignalAFailureEndsTheOthersToo) {
  Options options =
      shell(2, "trap '[ $RANK = 0 ] && exit 3' TERM; echo $$ >$FOLDER/pids/$RANK; while :; do sleep 0.01; done");
  options.stop_by = Launcher::StopBy::kSignal;
  options.grace_of_others_ns = 500'000'000;
  const Stopwatch watch;
  const int code = run(options, [&](pid_t front) {
    pids(2);
    kill(front, SIGTERM);
  });
  EXPECT_EQ(code, 128 + SIGTERM);
  EXPECT_LT(watch.seconds(), 20);
  EXPECT_THAT(err(), AllOf(HasSubstr("rank 0 (pid"), HasSubstr("exited with code 3"), HasSubstr("rank 1")));
}

// Who dies of another signal, such as a lack of memory's, has a report, though a stop was asked for.
TEST_F(LauncherTest, ADeathAfterASignalIsReported) {
  Options options = shell(
      2, "trap '[ $RANK = 0 ] && kill -9 $$; exit 0' TERM; echo $$ >$FOLDER/pids/$RANK; while :; do sleep 0.01; done");
  options.stop_by = Launcher::StopBy::kSignal;
  const int code = run(options, [&](pid_t front) {
    pids(2);
    kill(front, SIGTERM);
  });
  EXPECT_EQ(code, 128 + SIGTERM);
  EXPECT_THAT(err(), HasSubstr("killed by SIGKILL"));
}

TEST_F(LauncherTest, RanksThatSaveBecauseTheyWereAskedToStopAreNotEndedFromOutside) {
  Options options = shell(1, "trap 'sleep 3; exit 0' TERM; echo $$ >$FOLDER/pids/$RANK; while :; do sleep 0.01; done");
  options.stop_by = Launcher::StopBy::kSignal;
  const Stopwatch watch;
  options.must_end = [&watch] { return MustEnd{.why = watch.seconds() > 1 ? "the others have stopped" : ""}; };
  const int code = run(options, [&](pid_t front) {
    pids(1);
    kill(front, SIGTERM);
  });
  EXPECT_EQ(code, 0);
  EXPECT_THAT(err(), Not(HasSubstr("the others have stopped")));
}

TEST_F(LauncherTest, ASecondSignalKillsAtOnce) {
  Options options = shell(2, "trap '' INT TERM; echo $$ >$FOLDER/pids/$RANK; while :; do sleep 0.01; done");
  const int code = run(options, [&](pid_t front) {
    const auto all = pids(2);
    kill(front, SIGTERM);
    usleep(1'200'000);
    kill(front, SIGHUP);
    usleep(100'000);
    EXPECT_TRUE(std::all_of(all.begin(), all.end(), alive)) << "nobody asks twice by closing a terminal";
    kill(front, SIGINT);
  });
  EXPECT_EQ(code, 128 + SIGINT);
  EXPECT_TRUE(gone_within(pids(2), 0.1));
  EXPECT_THAT(err(), AllOf(HasSubstr("once more stops at once"), Not(HasSubstr("error:"))));
}

// A terminal that is closed, a service manager, timeout: each sends several signals for one end.
TEST_F(LauncherTest, SignalsThatComeTogetherAreOneRequest) {
  for (const auto& [first, second] : {std::pair(SIGHUP, SIGHUP), std::pair(SIGTERM, SIGHUP), std::pair(SIGHUP, SIGTERM),
                                      std::pair(SIGTERM, SIGTERM)}) {
    EXPECT_EQ(run(board_worker(3, "stop"),
                  [&, first = first, second = second](pid_t front) {
                    usleep(200'000);
                    kill(front, first);
                    usleep(10'000);  // one signal of a kind waits at most
                    kill(front, second);
                  }),
              kExitStoppedOnRequest);
  }
}

TEST_F(LauncherTest, SignalsThatComeTogetherAreOneRequestOfAProgramToo) {
  Options options =
      shell(2, "trap 'sleep 0.3; exit 0' TERM; echo $$ >$FOLDER/pids/$RANK; while :; do sleep 0.01; done");
  options.stop_by = Launcher::StopBy::kSignal;
  EXPECT_EQ(run(options,
                [&](pid_t front) {
                  pids(2);
                  kill(front, SIGTERM);
                  usleep(10'000);
                  kill(front, SIGHUP);
                }),
            0);
}

TEST_F(LauncherTest, WorkersStopThroughTheBoard) {
  EXPECT_EQ(run(board_worker(3, "stop"),
                [](pid_t front) {
                  usleep(200'000);
                  kill(front, SIGTERM);
                }),
            kExitStoppedOnRequest);
  EXPECT_EQ(err(), "stopping after this step, with a checkpoint; once more stops at once\n");
}

}  // namespace
}  // namespace lockstep::launch
