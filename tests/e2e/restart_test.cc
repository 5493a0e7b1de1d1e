// Launchers that start a job's processes anew: its run goes on, and no other job's does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "lockstep/base/error.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// As torchrun with --max-restarts does: two workers, all of them started anew where one has failed. The run id is the
// one that torchrun takes where none is given. Arguments: the first start's number, then the workers' command.
constexpr const char* kAgent = R"(
port=$((20000 + $$ % 20000)); start=$1; shift
for attempt in 0 1; do
  failed=0; pids=
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + attempt)) \
      TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=$((start + attempt)) "$@" & pids="$pids $!"
  done
  for pid in $pids; do wait $pid || failed=$?; done
  [ $failed = 0 ] && exit 0
done
exit $failed
)";

Words agent(int first_start, const Words& command) {
  return Words{"/bin/sh", "-c", kAgent, "agent", std::to_string(first_start), bin_folder() + "/lockstep-worker"} +
         command;
}

const Words kLong = {"--steps", "240", "--epochs", "60", "--save-every", "10", "--eval-every", "60epochs"};

void expect_refused(const Result& result) {
  EXPECT_EQ(result.exit_code, ConfigError::kExitCode) << result.err;
  EXPECT_THAT(result.err, HasSubstr("already holds a run"));
}

TEST(Restarted, AJobsRunGoesOnAndNoOthers) {
  const TempDir dir;
  const std::string run = dir / "run";
  const Words words = train_words(kLong + Words{"--out", run});
  Program job({.command = agent(0, words)});
  ASSERT_TRUE(eventually([&] { return fs::exists(run + "/checkpoints/step-000020.pt"); })) << job.err();
  const auto workers = job.processes("lockstep-worker");
  ASSERT_EQ(workers.size(), 2u);
  kill(workers[1], SIGKILL);
  const auto result = job.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("resumed     " + run + "/checkpoints/step-0000"));
  EXPECT_EQ(steps_logged(run), first_steps(240));
  ASSERT_EQ(lockstep(train_words(kLong + Words{"--nproc", "2", "--out", dir / "whole"})).exit_code, 0);
  EXPECT_EQ(outcome_of(run), outcome_of(dir / "whole"));
  const auto metrics = read_file(run + "/metrics.jsonl");
  expect_refused(Program({.command = agent(0, words)}).wait());
  expect_refused(Program({.command = agent(1, words)}).wait());
  expect_refused(lockstep(words));
  EXPECT_EQ(read_file(run + "/metrics.jsonl"), metrics);
}

TEST(Restarted, ARequeuedSlurmJobGoesOn) {
  const TempDir dir;
  const std::string run = dir / "run", weights = finished_run() + "/checkpoints/last.pt";
  const auto start = [&](const char* job, const char* restarts, const char* steps) {
    const Words variables = {"/usr/bin/env", cat("SLURM_JOB_ID=", job), cat("SLURM_RESTART_COUNT=", restarts)};
    const Words words = train_words({"--epochs", "3", "--steps", steps, "--load", weights, "--out", run});
    return Program({.command = variables + lockstep_command(words).command}).wait();
  };
  EXPECT_EQ(start("7", "0", "6").exit_code, 0);
  expect_refused(start("7", "0", "8"));
  expect_refused(start("8", "1", "8"));
  const auto again = start("7", "1", "8");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(steps_logged(run), first_steps(8));
  EXPECT_THAT(read_file(run + "/config.toml"), HasSubstr("load = '" + weights)) << "the weights that it began with";
}

}  // namespace
}  // namespace lockstep::e2e
