// Launchers that start a job's processes anew: its run goes on, and no other job's does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/testing/long_test.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// As torchrun with --max-restarts does: two workers, all of them started anew where one has failed. The run id is the
// one that torchrun takes where none is given. Arguments: the first start's number, what each further start adds to it,
// then the workers' command.
constexpr const char* kAgent = R"(
port=$((20000 + $$ % 20000)); start=$1; adds=$2; shift 2
for attempt in 0 1; do
  failed=0; pids=
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + attempt)) \
      TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=$((start + adds * attempt)) "$@" & pids="$pids $!"
  done
  for pid in $pids; do wait $pid || failed=$?; done
  [ $failed = 0 ] && exit 0
done
exit $failed
)";

Words agent(int first_start, const Words& command, int adds = 1) {
  return Words{"/bin/sh",
               "-c",
               kAgent,
               "agent",
               std::to_string(first_start),
               std::to_string(adds),
               bin_folder() + "/lockstep-worker"} +
         command;
}

const Words kLong = {"--steps", "240", "--epochs", "60", "--save-every", "10", "--eval-every", "60epochs"};

bool is_under_way(const std::string& run) {
  return eventually([&] { return steps_logged(run).size() > 30; });  // with checkpoints of its own
}

// Kills a worker of the run, and waits for the end of the job's second start.
Result restart(Program& job, const std::string& run, size_t workers = 2) {
  EXPECT_TRUE(is_under_way(run)) << job.err();
  const auto running = job.processes("lockstep-worker");
  EXPECT_EQ(running.size(), workers);
  if (!running.empty()) kill(running.back(), SIGKILL);
  return job.wait();
}

void expect_refused(const Result& result) {
  EXPECT_EQ(result.exit_code, ConfigError::kExitCode) << result.err;
  EXPECT_THAT(result.err, HasSubstr("already holds a run"));
}

TEST(Restarted, AJobsRunGoesOnAndNoOthers) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  const std::string run = dir / "run";
  const Words words = train_words(kLong + Words{"--out", run});
  Program job({.command = agent(0, words)});
  const auto result = restart(job, run);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("resumed     " + run + "/checkpoints/step-000"));
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
  const Words words = train_words(kLong + Words{"--load", weights, "--out", run});
  const auto command = [&](const char* job, const char* restarts) {
    const Words variables = {"/usr/bin/env", cat("SLURM_JOB_ID=", job), cat("SLURM_RESTART_COUNT=", restarts)};
    return Program::Options{.command = variables + lockstep_command(words).command};
  };
  {
    Program first(command("7", "0"));
    ASSERT_TRUE(is_under_way(run)) << first.err();
    first.signal(SIGKILL);
    first.wait();
  }
  expect_refused(Program(command("7", "0")).wait());
  expect_refused(Program(command("8", "1")).wait());
  const auto again = Program(command("7", "1")).wait();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("resumed     " + run + "/checkpoints/step-000"));
  EXPECT_EQ(steps_logged(run), first_steps(240));
  EXPECT_THAT(read_file(run + "/config.toml"), HasSubstr("load = '" + weights)) << "the weights that it began with";
}

// torchrun doesn't count the starts that follow a change of its nodes.
TEST(Restarted, AStartThatIsNotCountedIsOne) {
  const TempDir dir;
  const std::string run = dir / "run";
  const Words words = train_words(kLong + Words{"--out", run});
  Program job({.command = agent(0, words, 0)});
  const auto result = restart(job, run);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("resumed     " + run + "/checkpoints/step-000"));
  EXPECT_EQ(steps_logged(run), first_steps(240));
}

// What --resume names is where the first start began, and perhaps no longer there.
class RestartedResume : public ::testing::Test {
 protected:
  RestartedResume() {
    const Words words = {"--steps", "4", "--epochs",     "60",       "--save-every", "1",
                         "--keep",  "9", "--eval-every", "60epochs", "--out",        run_};
    EXPECT_EQ(lockstep(train_words(words)).exit_code, 0);
  }
  // A run that nothing stopped, made at the first call.
  static const std::string& whole() {
    static const TempDir dir;
    static const std::string run = dir / "whole";
    static const int code = lockstep(train_words(kLong + Words{"--out", run})).exit_code;
    EXPECT_EQ(code, 0);
    return run;
  }
  std::string checkpoint(int step) const { return cat(run_, "/checkpoints/step-00000", step, ".pt"); }
  Words resume(int step) const { return Words{"train", "--resume", checkpoint(step)} + kLong + Words{"--keep", "1"}; }
  void expect_whole(const std::string& run) const {
    EXPECT_EQ(steps_logged(run), first_steps(240));
    EXPECT_EQ(outcome_of(run), outcome_of(whole()));
  }
  static int count(const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }

  const TempDir dir_;
  const std::string run_ = dir_ / "run";
};

TEST_F(RestartedResume, GoesBackOnce) {
  LOCKSTEP_LONG_TEST_IF(true);
  Program job({.command = agent(0, resume(2) + Words{"--overwrite"}), .folder = dir_.path()});
  const auto result = restart(job, run_);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count(result.out, "dropped     step-"), 1) << result.out;
  EXPECT_EQ(count(result.out, "resumed     " + run_ + "/checkpoints/step-000"), 2) << result.out;
  EXPECT_EQ(count(result.out, "resumed     " + checkpoint(2)), 1) << result.out;
  expect_whole(run_);
}

TEST_F(RestartedResume, GoesOnInPlaceWhereTheFirstStartDid) {
  Program job({.command = agent(0, resume(4)), .folder = dir_.path()});
  const auto result = restart(job, run_);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(fs::exists(dir_ / "runs")) << "no fork";
  expect_whole(run_);
}

TEST_F(RestartedResume, AForkGoesOnAndKeepsItsParent) {
  LOCKSTEP_LONG_TEST_IF(true);
  const std::string fork = dir_ / "runs/mnist-1";
  Program job({.command = agent(0, resume(2), 0), .folder = dir_.path()});
  const auto result = restart(job, fork);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(fs::exists(dir_ / "runs/mnist-2"));
  EXPECT_EQ(count(result.out, "forked      from "), 1) << result.out;
  EXPECT_THAT(read_file(fork + "/config.toml"), HasSubstr("parent = '" + checkpoint(2) + "'\n"));
  expect_whole(fork);
}

// Several of its commands may have begun runs: each goes on with its own.
TEST_F(RestartedResume, ARequeuedSlurmJobsForkGoesOn) {
  LOCKSTEP_LONG_TEST_IF(true);
  const auto command = [&](const char* restarts, const Words& words) {
    const Words variables = {"/usr/bin/env", "SLURM_JOB_ID=7", cat("SLURM_RESTART_COUNT=", restarts)};
    return Program::Options{.command = variables + lockstep_command(words).command, .folder = dir_.path()};
  };
  const std::string fork = dir_ / "runs/mnist-1", other = dir_ / "runs/mnist-2";
  {
    Program first(command("0", resume(2)));
    ASSERT_TRUE(is_under_way(fork)) << first.err();
    first.signal(SIGKILL);
    first.wait();
  }
  const Words others = {"train", "--resume", checkpoint(2), "--steps", "3"};
  EXPECT_EQ(Program(command("0", others)).wait().exit_code, 0);
  fs::remove(checkpoint(2));
  for (const Words& words : {resume(2), others}) {
    const auto again = Program(command("1", words)).wait();
    EXPECT_EQ(again.exit_code, 0) << again.err;
  }
  expect_whole(fork);
  EXPECT_EQ(steps_logged(other), first_steps(3));
  EXPECT_FALSE(fs::exists(dir_ / "runs/mnist-3"));
}

// One worker of two nodes. The nodes change their places at the second start. Arguments: port, rank, command.
constexpr const char* kNode = R"(
port=$1; rank=$2; shift 2
for attempt in 0 1; do
  RANK=$rank GROUP_RANK=$rank LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 \
    MASTER_PORT=$((port + attempt)) TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0 "$@" && exit 0
  rank=$((1 - rank))
done
exit 1
)";

TEST_F(RestartedResume, AnotherNodesRank0GoesOn) {
  const std::string fork = dir_ / "runs/mnist-1", port = std::to_string(free_port());
  const auto node = [&](const char* rank) {
    const Words shell = {"/bin/sh", "-c", kNode, "node", port, rank, bin_folder() + "/lockstep-worker"};
    return Program::Options{.command = shell + resume(2), .folder = dir_.path()};
  };
  Program first(node("0")), second(node("1"));
  const auto result = restart(first, fork, 1);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto led = second.wait();
  EXPECT_EQ(led.exit_code, 0) << led.err;
  EXPECT_THAT(led.out, HasSubstr("resumed     runs/mnist-1/checkpoints/step-000"));
  EXPECT_FALSE(fs::exists(dir_ / "runs/mnist-2"));
  expect_whole(fork);
}

// A node's agent: one worker at each of the starts that it is there for. Arguments: port, the first of its starts, the
// last, its ranks at the starts 0 and 1, then the workers' command.
constexpr const char* kReplaced = R"(
port=$1; from=$2; last=$3; rank0=$4; rank1=$5; shift 5
failed=1
for attempt in $(seq $from $last); do
  eval rank=\$rank$attempt
  RANK=$rank GROUP_RANK=$rank LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 \
    MASTER_PORT=$((port + attempt)) TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0 "$@"
  failed=$?; [ $failed = 0 ] && exit 0
done
exit $failed
)";

// Two nodes. The second one's agent goes after the first start, and a new one comes, which the run's folder doesn't
// know.
class ReplacedAgent : public RestartedResume, public ::testing::WithParamInterface<bool> {
 protected:
  // Whether the agent that stays has rank 0 at the second start.
  static bool old_leads() { return GetParam(); }
  Program::Options agent(const char* from, const char* last, const char* rank0, const char* rank1, const Words& words,
                         const std::string& folder) const {
    const Words shell = {"/bin/sh", "-c", kReplaced, "agent", port_, from, last, rank0, rank1};
    return {.command = shell + Words{bin_folder() + "/lockstep-worker"} + words, .folder = folder};
  }
  // Both starts, with `between` in the midst, and the new agent in `folder`. Returns what the second one's ranks said.
  std::vector<Result> replace(const Words& words, const std::string& run, const std::function<void()>& between = {},
                              const std::string& folder = "") {
    Program stays(agent("0", "1", "0", old_leads() ? "0" : "1", words, dir_.path()));
    Program goes(agent("0", "0", "1", "", words, dir_.path()));
    EXPECT_TRUE(is_under_way(run)) << stays.err() << goes.err();
    const auto running = goes.processes("lockstep-worker");
    EXPECT_EQ(running.size(), 1U);
    goes.signal(SIGKILL);
    if (between) between();  // both ranks of the first start still run
    for (const pid_t pid : running) kill(pid, SIGKILL);
    Program comes(agent("1", "1", "", old_leads() ? "1" : "0", words, folder.empty() ? dir_.path() : folder));
    auto there = stays.wait(), came = comes.wait();
    goes.wait();
    if (!old_leads()) std::swap(there, came);
    return {there, came};
  }
  void expect_whole_after(const std::vector<Result>& ranks, const std::string& run) const {
    for (const Result& rank : ranks) EXPECT_EQ(rank.exit_code, 0) << rank.err;
    EXPECT_THAT(ranks[0].out, HasSubstr(run + "/checkpoints/step-000"));
    expect_whole(fs::path(run).is_absolute() ? run : dir_ / run);
  }

  const std::string port_ = std::to_string(free_port());
};

TEST_P(ReplacedAgent, FollowsTheForkThatItsJobHasMade) {
  LOCKSTEP_LONG_TEST_IF(!old_leads());
  const std::string fork = dir_ / "fork";
  const auto ranks = replace(resume(2) + Words{"--out", fork}, fork);
  expect_whole_after(ranks, fork);
  EXPECT_THAT(read_file(fork + "/config.toml"), HasSubstr("parent = '" + checkpoint(2) + "'\n"));
}

TEST_P(ReplacedAgent, FollowsAForkThatNobodyHasNamed) {
  LOCKSTEP_LONG_TEST_IF(true);
  const auto ranks = replace(resume(2), dir_ / "runs/mnist-1");
  EXPECT_FALSE(fs::exists(dir_ / "runs/mnist-2"));
  expect_whole_after(ranks, "runs/mnist-1");
}

TEST_P(ReplacedAgent, NeedsNoFileThatIsGone) {
  LOCKSTEP_LONG_TEST_IF(!old_leads());
  const std::string fork = dir_ / "fork";
  const auto ranks = replace(resume(2) + Words{"--out", fork}, fork, [&] { fs::remove(checkpoint(2)); });
  expect_whole_after(ranks, fork);
}

// The new agent's node has a disk of its own: there is no such folder, which rank 0 alone needs.
TEST_P(ReplacedAgent, NeedsTheFolderOnRank0sDiskAlone) {
  LOCKSTEP_LONG_TEST_IF(!old_leads());
  fs::create_directory(dir_ / "node");
  const auto ranks = replace(resume(2) + Words{"--out", "fork"}, dir_ / "fork", {}, dir_ / "node");
  EXPECT_FALSE(fs::exists(dir_ / "node/fork"));
  if (old_leads()) return expect_whole_after(ranks, "fork");
  for (const Result& rank : ranks) {
    EXPECT_EQ(rank.exit_code, ConfigError::kExitCode) << rank.err;
    EXPECT_THAT(rank.err, HasSubstr("rank 1: fork: an earlier start of this job"));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReplacedAgent, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "TheOldOneLeads" : "TheNewOneLeads"; });

}  // namespace
}  // namespace lockstep::e2e
