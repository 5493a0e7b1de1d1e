// Ranks that another launcher has started, of which one can't take part: all end at once, and name it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// How the ranks are placed: all on one node, or each on a node of its own, as far as they know.
class GivenUp : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Program> rank(int rank, int size, const Words& words) const {
    const bool one_node = GetParam();
    const Words variables = {"/usr/bin/env",
                             cat("RANK=", rank),
                             cat("WORLD_SIZE=", size),
                             cat("LOCAL_RANK=", one_node ? rank : 0),
                             cat("LOCAL_WORLD_SIZE=", one_node ? size : 1),
                             "MASTER_ADDR=127.0.0.1",
                             "MASTER_PORT=" + port_};
    return std::make_unique<Program>(
        Program::Options{.command = variables + Words{bin_folder() + "/lockstep-worker"} + words});
  }
  // Starts three ranks, of which `who` has the words `wrong`, and expects that all end by its error, which begins
  // with `line`.
  void expect_told(int who, const Words& right, const Words& wrong, int code, const std::string& line) const {
    constexpr int kRanks = 3;
    std::vector<std::unique_ptr<Program>> ranks;
    for (int each = 0; each < kRanks; ++each) ranks.push_back(rank(each, kRanks, each == who ? wrong : right));
    for (const auto& each : ranks) {
      const auto result = each->wait();
      EXPECT_EQ(result.exit_code, code);
      EXPECT_THAT(result.err, StartsWith(cat("error: rank ", who, ": ", line)));
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
  }

  const std::string port_ = std::to_string(free_port());
  const TempDir dir_;
  const Words right_ = train_words({"--steps", "3", "--out", dir_ / "run"});
};

TEST_P(GivenUp, AnOptionThatOneRankDoesNotKnow) {
  expect_told(1, right_, right_ + Words{"--lrr", "1"}, ConfigError::kExitCode,
              "--lrr: unknown option; did you mean --lr?");
}

TEST_P(GivenUp, AFileThatRank0DoesNotHave) {
  const std::string file = dir_ / "none.toml";
  expect_told(0, right_, right_ + Words{"--config", file}, ConfigError::kExitCode,
              "--config " + file + ": No such file or directory (errno 2)");
}

TEST_P(GivenUp, DataThatOneNodeDoesNotHave) {
  const std::string data = dir_ / "none";
  expect_told(2, right_, {"train", "mnist", "--data", data, "--steps", "3", "--out", dir_ / "run"},
              ConfigError::kExitCode,
              cat("--data ", data, ": no such file or folder; leave --data out to train on data made on the spot"));
}

TEST_P(GivenUp, AnInterfaceThatOneNodeDoesNotHave) {
  const Words right = right_ + Words{"--backend", "gloo"};
  expect_told(1, right, right + Words{"--interface", "none0"}, ConfigError::kExitCode,
              "--interface none0: this machine has no such interface");
}

TEST_P(GivenUp, AnEvaluationsWords) {
  const Words right = {"eval", "mnist", "--load", finished_run() + "/checkpoints/last.pt", "--data", digits_folder()};
  expect_told(1, right, right + Words{"--batchsize", "3"}, ConfigError::kExitCode,
              "--batchsize: unknown option; did you mean --batch-size?");
}

// All have it, and each says so.
TEST_P(GivenUp, AMistakeOfAll) {
  std::vector<std::unique_ptr<Program>> ranks;
  for (int each = 0; each < 2; ++each) ranks.push_back(rank(each, 2, right_ + Words{"--lrr", "1"}));
  for (size_t each = 0; each < ranks.size(); ++each) {
    const auto result = ranks[each]->wait();
    EXPECT_EQ(result.exit_code, ConfigError::kExitCode);
    EXPECT_THAT(result.err, HasSubstr(cat("error: rank ", each, ": --lrr")));
  }
}

INSTANTIATE_TEST_SUITE_P(Place, GivenUp, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "OneNode" : "Nodes"; });

}  // namespace
}  // namespace lockstep::e2e
