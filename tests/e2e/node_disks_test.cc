// Runs on two nodes whose disks are their own: two launchers on this machine, each in a folder of its own, so that
// `--out run` is another folder on each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>

#include "endless_run.h"
#include "lockstep/base/error.h"
#include "program.h"
#include "runs.h"
#include "support/ports.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;

class NodeDisks : public ::testing::Test {
 protected:
  static constexpr int kNodes = 2;

  NodeDisks() {
    for (int node = 0; node < kNodes; ++node) fs::create_directory(disk(node));
  }
  std::string disk(int node) const { return dir_ / std::to_string(node); }
  std::string run_on(int node) const { return disk(node) + "/run"; }
  std::string checkpoint_on(int node, int step) const {
    return run_on(node) + "/checkpoints/step-00000" + std::to_string(step) + ".pt";
  }

  static std::string free_port() { return std::to_string(testing_support::ListeningPort().port()); }

  // `words` on two ranks of each node, in its folder.
  std::array<Result, kNodes> on_both(const Words& words) const { return on_both(words, {disk(0), disk(1)}); }
  std::array<Result, kNodes> on_both(const Words& words, const std::array<std::string, kNodes>& folders) const {
    const Nodes nodes = started(words, folders);
    return {nodes[0]->wait(), nodes[1]->wait()};
  }
  using Nodes = std::array<std::unique_ptr<Program>, kNodes>;
  static Nodes started(const Words& words, const std::array<std::string, kNodes>& folders) {
    const std::string port = free_port();
    Nodes nodes;
    for (size_t node = 0; node < kNodes; ++node) {
      const Words line =
          Words{"launch", "--nnodes=2",  "--nproc-per-node=2", "--master-addr=127.0.0.1",        "--master-port",
                port,     "--node-rank", std::to_string(node), bin_folder() + "/lockstep-worker"};
      nodes[node] = std::make_unique<Program>(lockstep_command(line + words, folders[node]));
    }
    return nodes;
  }
  void expect_trained(const Words& words) const {
    for (const Result& result : on_both(words)) EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  static Words steps(int count, const Words& more) {
    return train_words(kAveraged + Words{"--steps", std::to_string(count), "--save-every", "4steps"} + more);
  }
  static Words begin(int count, const Words& more = {"--save-on", "node"}) {
    return steps(count, Words{"--out", "run"} + more);
  }
  static Words go_on(int count, const Words& more = {"--save-on", "node"}) {
    return steps(count, Words{"--resume", "run"} + more);
  }
  static std::string undisturbed() { return outcome_of(finished_run(kAveraged)).dump(); }
  std::string outcome() const { return outcome_of(run_on(0)).dump(); }

  const TempDir dir_;
};

TEST_F(NodeDisks, EachNodeSavesTheBytesOfOneProcess) {
  expect_trained(begin(kSteps, {"--save-on", "node", "--shard-optimizer", "on"}));
  EXPECT_EQ(outcome(), undisturbed());
  const std::string whole = read_file(finished_run(kAveraged) + "/checkpoints/step-000012.pt");
  EXPECT_FALSE(whole.empty());
  for (int node = 0; node < kNodes; ++node) {
    EXPECT_TRUE(read_file(run_on(node) + "/checkpoints/last.pt") == whole) << "node " << node;
    EXPECT_TRUE(fs::exists(checkpoint_on(node, 8))) << "node " << node;
    EXPECT_TRUE(fs::exists(run_on(node) + "/checkpoints/best.pt")) << "node " << node;
    EXPECT_TRUE(fs::exists(run_on(node) + "/config.toml")) << "node " << node;
  }
}

TEST_F(NodeDisks, ANodeThatHasLostItsDiskGetsTheRun) {
  expect_trained(begin(8));
  fs::remove_all(run_on(1));
  expect_trained(go_on(kSteps));
  EXPECT_EQ(outcome(), undisturbed());
  EXPECT_TRUE(fs::exists(checkpoint_on(1, 8)));
  EXPECT_TRUE(read_file(run_on(1) + "/checkpoints/last.pt") == read_file(run_on(0) + "/checkpoints/last.pt"));
}

TEST_F(NodeDisks, SoDoesTheFirstNode) {
  expect_trained(begin(8));
  fs::remove_all(run_on(0));
  expect_trained(go_on(kSteps));
  EXPECT_EQ(outcome(), undisturbed());
  EXPECT_TRUE(fs::exists(checkpoint_on(0, 8)));
}

TEST_F(NodeDisks, TheNewestOfAnyNodeCounts) {
  expect_trained(begin(8));
  fs::remove(checkpoint_on(0, 8));
  write_file(checkpoint_on(1, 4), "no checkpoint");
  const auto results = on_both(go_on(kSteps));
  EXPECT_EQ(results[0].exit_code, 0) << results[0].err;
  EXPECT_EQ(results[1].exit_code, 0) << results[1].err;
  EXPECT_THAT(results[0].out, HasSubstr("step-000008.pt"));
  EXPECT_EQ(outcome(), undisturbed());
}

TEST_F(NodeDisks, ADamagedCheckpointIsReplacedByAnotherNodes) {
  expect_trained(begin(8));
  const std::string whole = read_file(checkpoint_on(1, 8));
  write_file(checkpoint_on(0, 8), whole.substr(0, whole.size() / 2));
  expect_trained(go_on(kSteps));
  EXPECT_EQ(outcome(), undisturbed());
  EXPECT_TRUE(read_file(checkpoint_on(0, 8)) == whole);
}

// As one that a fork of the run has saved there.
TEST_F(NodeDisks, AnotherCheckpointOfTheSameStepIsReplaced) {
  expect_trained(begin(8));
  const std::string other = dir_ / "other";
  EXPECT_EQ(lockstep(steps(8, {"--seed", "2", "--out", other})).exit_code, 0);
  fs::copy_file(other + "/checkpoints/step-000008.pt", checkpoint_on(1, 8), fs::copy_options::overwrite_existing);
  expect_trained(go_on(kSteps));
  EXPECT_EQ(outcome(), undisturbed());
  EXPECT_TRUE(read_file(checkpoint_on(1, 8)) == read_file(checkpoint_on(0, 8)));
}

TEST_F(NodeDisks, AnotherRunsFolderIsRefused) {
  expect_trained(begin(4));
  fs::rename(run_on(1), disk(1) + "/kept");
  fs::rename(run_on(0), disk(0) + "/kept");
  expect_trained(begin(8));
  fs::remove_all(run_on(1));
  fs::rename(disk(1) + "/kept", run_on(1));
  const std::string before = read_file(checkpoint_on(1, 4));
  for (const Words& words : {go_on(kSteps), begin(kSteps)}) {
    const auto results = on_both(words);
    EXPECT_EQ(results[0].exit_code, ConfigError::kExitCode) << results[0].err;
  }
  EXPECT_TRUE(read_file(checkpoint_on(1, 4)) == before);
  EXPECT_THAT(on_both(go_on(kSteps))[1].err,
              ContainsRegex("error: --out run: on the disk of .* it holds another run; move that away"));
}

// The first node was lost before its first checkpoint was on its disk.
TEST_F(NodeDisks, ARunThatAnotherNodeHasSavedIsNotBegunAnew) {
  expect_trained(begin(8));
  for (const auto& each : fs::directory_iterator(run_on(0) + "/checkpoints")) fs::remove(each.path());
  for (const char* name : {"/metrics.jsonl", "/final.json"}) fs::remove(run_on(0) + name);
  const auto results = on_both(begin(kSteps, {"--save-on", "node", "--overwrite"}));
  EXPECT_EQ(results[0].exit_code, ConfigError::kExitCode) << results[0].err;
  EXPECT_THAT(results[1].err, HasSubstr("has checkpoints of this run, and it begins anew here"));
  EXPECT_TRUE(fs::exists(checkpoint_on(1, 8)));
  expect_trained(go_on(kSteps));
  EXPECT_EQ(outcome_of(run_on(0)).dump(), undisturbed());
}

// Of the run that is forked a node may have another one at the same path.
TEST_F(NodeDisks, AForkIsOfTheFirstNodesRun) {
  expect_trained(begin(4));
  fs::remove_all(run_on(1));
  EXPECT_EQ(lockstep(steps(12, {"--seed", "2", "--out", run_on(1)})).exit_code, 0);
  expect_trained(steps(kSteps, {"--resume", "run", "--out", "fork", "--save-on", "node"}));
  EXPECT_EQ(outcome_of(disk(0) + "/fork").dump(), undisturbed());
  EXPECT_TRUE(fs::exists(disk(1) + "/fork/checkpoints/step-000004.pt"));
}

TEST_F(NodeDisks, WithoutItRank0sCheckpointReachesAll) {
  expect_trained(begin(8, {}));
  EXPECT_FALSE(fs::exists(run_on(1)));
  expect_trained(go_on(kSteps, {}));
  EXPECT_EQ(outcome(), undisturbed());
  EXPECT_FALSE(fs::exists(run_on(1)));
}

TEST_F(NodeDisks, ADiskThatBothSeeIsWrittenOnce) {
  const std::array<std::string, kNodes> one = {disk(0), disk(0)};
  for (const Words& words : {begin(8), go_on(kSteps)}) {
    for (const Result& result : on_both(words, one)) EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(outcome(), undisturbed());
}

TEST_F(NodeDisks, ARunThatGoesOnSavesAsItDid) {
  expect_trained(begin(8));
  expect_trained(go_on(kSteps, {}));  // its config.toml says where
  EXPECT_TRUE(read_file(run_on(1) + "/checkpoints/last.pt") == read_file(run_on(0) + "/checkpoints/last.pt"));
  EXPECT_EQ(outcome(), undisturbed());
}

// A cluster asks whichever process it likes: here those of the node without rank 0.
TEST_F(NodeDisks, ARequestToStopMayReachAnyProcessOfAnyNode) {
  struct Asked {
    const char* name;
    bool launcher;
    int signal;
  };
  for (const Asked& asked :
       {Asked{"launcher", true, SIGTERM}, Asked{"rank", false, SIGTERM}, Asked{"rank", false, SIGUSR1}}) {
    const std::string run = "run-" + std::string(asked.name) + std::to_string(asked.signal);
    const Nodes nodes =
        started(train_words({"--epochs", "100000", "--save-every", "0", "--eval-every", "0", "--out", run}),
                {disk(0), disk(1)});
    ASSERT_TRUE(eventually([&] { return steps_logged(disk(0) + "/" + run).size() >= 3; })) << nodes[0]->err();
    if (asked.launcher) {
      nodes[1]->signal(asked.signal);
    } else {
      const auto ranks = nodes[1]->processes("lockstep-worker");
      ASSERT_FALSE(ranks.empty());
      signal_to(ranks.back(), asked.signal);
    }
    for (const auto& node : nodes) EXPECT_EQ(node->wait().exit_code, 75) << asked.name << ": " << node->err();
    EXPECT_TRUE(fs::exists(disk(0) + "/" + run + "/checkpoints/INTERRUPTED.pt")) << asked.name;
  }
}

}  // namespace
}  // namespace lockstep::e2e
