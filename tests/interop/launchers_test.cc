// Real launchers beside ours: the same programs see the same variables and compute the same, and ours run under theirs.
// `./run test interop` has them; elsewhere those that are missing are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "e2e/runs.h"
#include "lockstep/base/env.h"
#include "lockstep/base/testing/command.h"
#include "lockstep/base/text.h"

namespace lockstep::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing_support::CommandOutput;
using testing_support::run_command;

const std::string kFolder = LOCKSTEP_SOURCE_DIR "/tests/interop";

// With what it says on standard error.
CommandOutput run(const std::string& command) { return run_command("timeout 300 " + command + " 2>&1"); }

std::string ours(const std::string& flags) { return cat(bin_folder(), "/lockstep launch ", flags, ' '); }

std::string lines_with(const std::string& text, const std::string& word) {
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (const size_t at = line.find(word); at != std::string::npos) out += line.substr(at) + '\n';
  }
  return out;
}

// What the ranks of `launcher PYTHON-PROGRAM` saw.
std::vector<json> seen_under(const std::string& launcher, int ranks) {
  const TempDir dir;
  const CommandOutput output =
      run(cat("env PROBE_FOLDER=", dir / ".", ' ', launcher, ' ', kFolder, "/launched_environment.py a --b=c"));
  EXPECT_EQ(output.status, 0) << output.text;
  std::vector<json> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(json::parse(read_file(dir / cat(rank, ".json")), nullptr, false));
  return all;
}

// Every variable that `theirs` has, ours has too, with the same value; of `free` ones there must be some value, and
// those that name files which only their launchers write may be missing.
void expect_the_same(const std::vector<json>& theirs, const std::vector<json>& here, const std::set<std::string>& free,
                     const std::set<std::string>& only_theirs) {
  ASSERT_EQ(theirs.size(), here.size());
  for (size_t rank = 0; rank < theirs.size(); ++rank) {
    ASSERT_TRUE(theirs[rank].is_object() && here[rank].is_object()) << "rank " << rank << " did not run";
    EXPECT_EQ(theirs[rank]["arguments"], here[rank]["arguments"]);
    for (const auto& [name, value] : theirs[rank]["variables"].items()) {
      if (only_theirs.count(name) > 0) continue;
      ASSERT_TRUE(here[rank]["variables"].contains(name)) << name;
      if (free.count(name) == 0) EXPECT_EQ(here[rank]["variables"][name], value) << name << " of rank " << rank;
    }
  }
}

// Trains mnist by lockstep-worker under a launcher of 2 ranks, and compares with the run of one.
void expect_the_weights_of_one(const std::string& launcher) {
  const TempDir dir;
  std::string words;
  for (const auto& word : train_words({"--steps", std::to_string(kSteps), "--out", dir / "run"})) words += ' ' + word;
  const CommandOutput output = run(cat(launcher, ' ', bin_folder(), "/lockstep-worker", words));
  ASSERT_EQ(output.status, 0) << output.text;
  EXPECT_EQ(final_of(dir / "run").value("world_size", 0), 2);
  EXPECT_EQ(outcome_of(dir / "run"), outcome_of(finished_run()));
}

class InteropTorch : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run(python_ + " -c 'import torch.distributed.run'").status != 0) {
      GTEST_SKIP() << python_ << " has no torch; name one that has in LOCKSTEP_PYTORCH_PYTHON";
    }
  }
  std::string python_ = env("LOCKSTEP_PYTORCH_PYTHON").value_or("python3");
  std::string torchrun_ = python_ + " -m torch.distributed.run ";
};

TEST_F(InteropTorch, ProgramsSeeTheVariablesThatTorchrunSets) {
  const TempDir logs;
  for (const std::string& flags :
       {std::string("--nproc-per-node=2"), std::string("--standalone --nproc_per_node 2 --role=r --max-restarts 1"),
        cat("--nproc-per-node 2 --rdzv-id j --rdzv-backend c10d --rdzv-endpoint localhost:0 --redirects 3 --log-dir ",
            logs / "x")}) {
    SCOPED_TRACE(flags);
    expect_the_same(seen_under(torchrun_ + flags, 2), seen_under(cat("env PYTHON_EXEC=", python_, ' ', ours(flags)), 2),
                    {"MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE",
                     flags.starts_with("--standalone") ? "TORCHELASTIC_RUN_ID" : "", "OMP_NUM_THREADS"},
                    {flags.find("--redirects") == std::string::npos ? "TORCHELASTIC_ERROR_FILE" : ""});
  }
}

TEST_F(InteropTorch, TorchDistributedLaunchPassesTheLocalRank) {
  const auto theirs = seen_under(python_ + " -m torch.distributed.launch --nproc-per-node=2", 2);
  expect_the_same(theirs, seen_under(cat("env PYTHON_EXEC=", python_, ' ', ours("--local-rank --nproc-per-node=2")), 2),
                  {"MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", "OMP_NUM_THREADS"}, {"TORCHELASTIC_ERROR_FILE"});
}

TEST_F(InteropTorch, AnOrdinaryProgramHasTheSameLosses) {
  const std::string program = kFolder + "/ddp_losses.py";
  const CommandOutput theirs = run(torchrun_ + "--standalone --nproc-per-node 2 " + program);
  const CommandOutput here =
      run(cat("env PYTHON_EXEC=", python_, ' ', ours("--standalone --nproc-per-node 2"), program));
  ASSERT_EQ(theirs.status, 0) << theirs.text;
  ASSERT_EQ(here.status, 0) << here.text;
  const std::string losses = lines_with(theirs.text, "loss ");
  EXPECT_EQ(std::count(losses.begin(), losses.end(), '\n'), 18);
  EXPECT_EQ(lines_with(here.text, "loss "), losses);
}

TEST_F(InteropTorch, OurWorkersEndWithTheSameWeightsUnderTorchrun) {
  expect_the_weights_of_one(torchrun_ + "--standalone --no-python --nproc-per-node 2");
}

TEST(InteropMpi, OurWorkersEndWithTheSameWeightsUnderMpirun) {
  bool any = false;
  for (const std::string launcher : {"mpirun.openmpi --allow-run-as-root --oversubscribe -n 2", "mpiexec.hydra -n 2"}) {
    if (run(cat("sh -c 'command -v ", launcher.substr(0, launcher.find(' ')), "'")).status != 0) continue;
    SCOPED_TRACE(launcher);
    expect_the_weights_of_one(launcher);
    any = true;
  }
  if (!any) GTEST_SKIP() << "no mpirun.openmpi and no mpiexec.hydra in PATH";
}

class InteropSlurm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run("sh -c 'PATH=$PATH:/usr/sbin; command -v srun && command -v slurmctld && command -v slurmd'").status != 0) {
      GTEST_SKIP() << "no srun, slurmctld and slurmd in PATH";
    }
    if (run("timeout 60 " + srun_ + "-n 1 true").status != 0) GTEST_SKIP() << "Slurm's daemons don't start here";
  }
  std::string srun_ = LOCKSTEP_SOURCE_DIR "/tests/tools/with-slurm srun --overcommit ";
};

TEST_F(InteropSlurm, OurWorkersEndWithTheSameWeightsUnderSrun) { expect_the_weights_of_one(srun_ + "-n 2"); }

TEST_F(InteropSlurm, RanksKnowTheirPlace) {
  const CommandOutput output = run(cat(srun_, "-n 2 --label ", bin_folder(), "/lockstep doctor --env"));
  EXPECT_EQ(output.status, 0) << output.text;
  for (const char* line : {"0: launcher    srun", "0: place       rank 0 of 2, local rank 0 of 2, node 0",
                           "1: place       rank 1 of 2, local rank 1 of 2, node 0"}) {
    EXPECT_THAT(output.text, HasSubstr(line));
  }
}

class InteropPaddle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run(python_ + " -c 'import paddle.distributed.launch'").status != 0) {
      GTEST_SKIP() << python_ << " has no paddle; name one that has in LOCKSTEP_PADDLE_PYTHON";
    }
  }
  std::string python_ = env("LOCKSTEP_PADDLE_PYTHON").value_or("python3");
  const TempDir logs_;
  std::string theirs_ = cat(python_, " -m paddle.distributed.launch --log_dir ", logs_ / "log", ' ');
};

TEST_F(InteropPaddle, ProgramsSeeTheVariablesThatPaddleSets) {
  const std::string flags = cat("--job_id j --nproc_per_node 2 --log_dir ", logs_ / "log");
  expect_the_same(seen_under(cat(python_, " -m paddle.distributed.launch ", flags), 2),
                  seen_under(cat("env PYTHON_EXEC=", python_, ' ', ours(flags)), 2),
                  {"PADDLE_MASTER", "PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINER_ENDPOINTS", "OMP_NUM_THREADS"},
                  {"PADDLE_BACKUP_ENV_PATH"});
}

TEST_F(InteropPaddle, AnOrdinaryProgramHasTheSameLosses) {
  const std::string program = kFolder + "/paddle_losses.py";
  const CommandOutput theirs = run(theirs_ + "--nproc_per_node 2 " + program);
  const CommandOutput here = run(cat("env PYTHON_EXEC=", python_, ' ', ours("--devices 0,1"), program));
  ASSERT_EQ(theirs.status, 0) << theirs.text;
  ASSERT_EQ(here.status, 0) << here.text;
  const std::string losses = lines_with(read_file(logs_ / "log/workerlog.0"), "loss ");
  EXPECT_EQ(std::count(losses.begin(), losses.end(), '\n'), 6);
  EXPECT_EQ(lines_with(here.text, "loss "), losses);
  EXPECT_THAT(here.text, HasSubstr("[rank 1] rank 1 of 2"));
}

TEST_F(InteropPaddle, OurWorkersEndWithTheSameWeightsUnderPaddle) {
  expect_the_weights_of_one(theirs_ + "--nproc_per_node 2");
}

}  // namespace
}  // namespace lockstep::e2e
