// Ctrl-C and SIGTERM: the first one saves, the second one ends at once; nothing stays behind.
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

#include "endless_run.h"
#include "lockstep/base/stop_request.h"

namespace lockstep::e2e {
namespace {

class Stop : public ::testing::TestWithParam<int> {};

TEST_P(Stop, TheFirstSavesACheckpoint) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  run.program.signal(GetParam());
  const auto result = run.program.wait();
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_EQ(result.err.find("error:"), std::string::npos) << result.err;
  EXPECT_TRUE(std::filesystem::exists(run.folder() + "/checkpoints/INTERRUPTED.pt"));
  EXPECT_TRUE(run.program.all_gone(std::chrono::seconds(5)));
}

// As when a terminal is closed, a session ends or timeout has enough.
TEST_P(Stop, SignalsThatComeTogetherAreOneRequest) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  run.program.signal(GetParam());
  run.program.signal(SIGHUP);
  EXPECT_EQ(run.program.wait().exit_code, 75);
  EXPECT_TRUE(std::filesystem::exists(run.folder() + "/checkpoints/INTERRUPTED.pt"));
}

// As Slurm warns of a job's limit, and as a container's or a pod's end reaches its own processes.
class StopWarned : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(StopWarned, SavesACheckpoint) {
  const auto [signal, rank] = GetParam();
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  if (rank < 0) {
    run.program.signal(signal);
  } else {
    signal_to(run.worker(rank), signal);
  }
  const auto result = run.program.wait();
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_TRUE(std::filesystem::exists(run.folder() + "/checkpoints/INTERRUPTED.pt"));
  EXPECT_TRUE(run.program.all_gone(std::chrono::seconds(5)));
}

INSTANTIATE_TEST_SUITE_P(Signals, StopWarned,
                         ::testing::Values(std::pair(SIGUSR1, -1), std::pair(SIGUSR1, 1), std::pair(SIGTERM, 0),
                                           std::pair(SIGTERM, 1)));

// Under torchrun, mpirun or srun the worker itself writes to the terminal, which takes nothing any more.
TEST(StopWithoutALauncher, AClosedTerminalSavesACheckpoint) {
  const TempDir dir;
  int master = -1, slave = -1;
  std::array<char, 64> name{};
  ASSERT_EQ(openpty(&master, &slave, name.data(), nullptr, nullptr), 0);
  const Words words = train_words({"--epochs", "1000000", "--out", dir / "run"});
  Words command = {"/bin/sh", "-c", "terminal=$0; exec \"$@\" >$terminal 2>&1", name.data(),
                   bin_folder() + "/lockstep-worker"};
  Program program({.command = command + words});
  ASSERT_TRUE(eventually([&] { return steps_logged(dir / "run").size() >= 5; }));
  program.signal(SIGSTOP);  // so that it writes nothing in between
  program.signal(SIGHUP);
  close(master);
  close(slave);
  program.signal(SIGCONT);
  EXPECT_EQ(program.wait().exit_code, 75);
  EXPECT_TRUE(std::filesystem::exists(dir / "run/checkpoints/INTERRUPTED.pt"));
}

// The first line that can't be written stops the run as a request does: the reader of the output goes away.
TEST(StopWithoutALauncher, ARankThatWaitsForOthersHasNothingToSave) {
  Program rank({.command = Words{"/usr/bin/env", "RANK=1", "LOCAL_RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2",
                                 "MASTER_ADDR=127.0.0.1", "MASTER_PORT=9", bin_folder() + "/lockstep-worker"} +
                           train_words({})});
  ASSERT_TRUE(eventually([&] { return rank.err().find("waiting at ") != std::string::npos; })) << rank.err();
  rank.signal(SIGTERM);
  EXPECT_EQ(rank.wait(std::chrono::seconds(5)).exit_code, 128 + SIGTERM);
}

TEST(StopWithoutALauncher, OutputThatCanNotBeWrittenSavesACheckpointAndIsAnError) {
  const TempDir dir;
  const Words command = {"/bin/bash", "-c",
                         "set -o pipefail; metrics=$0; \"$@\" | until [ -s $metrics ]; do sleep 0.05; done",
                         dir / "run/metrics.jsonl", bin_folder() + "/lockstep-worker"};
  Program program({.command = command + train_words({"--epochs", "1000000", "--out", dir / "run"})});
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 74);
  EXPECT_NE(result.err.find("standard output: can't be written"), std::string::npos) << result.err;
  EXPECT_TRUE(std::filesystem::exists(dir / "run/checkpoints/INTERRUPTED.pt"));
}

// A rank that stands still would never come to the end of its step.
TEST_P(Stop, TheSecondEndsAtOnce) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  const Held rank(run.worker(1));
  run.program.signal(GetParam());
  ASSERT_TRUE(eventually([&] { return run.program.err().find("once more") != std::string::npos; }));
  EXPECT_EQ(run.program.processes("lockstep-worker").size(), 2u);
  std::this_thread::sleep_for(std::chrono::nanoseconds(StopRequest::kOneRequestNs));
  const auto second = std::chrono::steady_clock::now();
  run.program.signal(GetParam());
  const auto result = run.program.wait();
  EXPECT_EQ(result.exit_code, 128 + GetParam()) << result.err;
  EXPECT_LT(std::chrono::steady_clock::now() - second, std::chrono::seconds(20));
  EXPECT_TRUE(run.program.all_gone(std::chrono::seconds(5)));
}

INSTANTIATE_TEST_SUITE_P(Signals, Stop, ::testing::Values(SIGINT, SIGTERM));

}  // namespace
}  // namespace lockstep::e2e
