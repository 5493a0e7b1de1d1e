// Several ranks over NCCL, which takes a GPU for each. Where there is one, each rank is a host of its own to NCCL, and
// they share it over sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>

#include "endless_run.h"
#include "lockstep/base/error.h"
#include "lockstep/base/gpus.h"
#include "lockstep/base/testing/gpu.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using testing::HasSubstr;

// lockstep-worker's words by so many ranks of one node.
Program::Options by_ranks(int ranks, const Words& words) {
  const std::string host = visible_gpus() < ranks ? "NCCL_HOSTID=rank$RANK " : "";
  return lockstep_command(Words{"launch", "--nproc-per-node", std::to_string(ranks), "/bin/sh", "-c",
                                host + "exec \"$0\" \"$@\"", bin_folder() + "/lockstep-worker"} +
                          words);
}

Words on_gpu(const Words& recipe, const std::string& run) {
  return Words{"train"} + recipe + Words{"--lanes", "2", "--device", "cuda", "--out", run};
}

// Of a run whose output has `says`.
nlohmann::json trained(int ranks, const Words& recipe, const std::string& says = "") {
  const TempDir dir;
  const Result result = Program(by_ranks(ranks, on_gpu(recipe, dir / "run"))).wait();
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, HasSubstr(says));
  if (ranks > 1) EXPECT_THAT(result.out + result.err, HasSubstr("ranks       2 (nccl)"));
  return final_of(dir / "run");
}

const std::vector<Words> kRecipes = {
    {"mnist", "--batch-size", "16", "--steps", "20"},
    {"imagenet", "--arch", "resnet18", "--size", "64", "--batch-size", "8", "--steps", "4", "--sync-bn"},
    {"imagenet", "--arch", "mobilenet_v2", "--size", "64", "--batch-size", "8", "--steps", "4", "--amp", "O2",
     "--dtype", "fp16"}};

TEST(GpuRanks, TwoHaveTheBitsOfOne) {
  LOCKSTEP_NEEDS_GPU();
  for (const Words& recipe : kRecipes) {
    const auto one = trained(1, recipe), two = trained(2, recipe);
    EXPECT_EQ(one.at("weights_sha256"), two.at("weights_sha256")) << recipe[2];
    EXPECT_EQ(one.at("loss"), two.at("loss")) << recipe[2];
  }
}

TEST(GpuRanks, NcclsOwnSumsAreNear) {
  LOCKSTEP_NEEDS_GPU();
  for (const Words& recipe : kRecipes) {
    const Words fast = recipe + Words{"--deterministic", "off"};
    const double one = trained(1, fast).at("loss").get<double>(), two = trained(2, fast).at("loss").get<double>();
    EXPECT_TRUE(std::isfinite(two));
    EXPECT_NEAR(one, two, 0.05 * std::abs(one)) << recipe[2];
  }
}

TEST(GpuRanks, AShardedOptimizerHasTheBitsOfAWholeOne) {
  LOCKSTEP_NEEDS_GPU();
  const Words words = {"mnist", "--batch-size", "16", "--steps", "20", "--optimizer", "adamw", "--lr", "0.001"};
  for (const Words& level : {Words{"--amp", "O0"}, Words{"--amp", "O2", "--dtype", "bf16"}}) {
    const auto whole = trained(2, words + level),
               sharded = trained(2, words + level + Words{"--shard-optimizer", "on"}, "state sharded over 2 ranks");
    EXPECT_EQ(whole.at("weights_sha256"), sharded.at("weights_sha256")) << level[1];
  }
}

// The checkpoint of two ranks that have a slice each is a whole one's.
TEST(GpuRanks, OneRankGoesOnFromTheSlicesOfTwo) {
  LOCKSTEP_NEEDS_GPU();
  const TempDir dir;
  const Words words = {"mnist", "--batch-size", "16", "--optimizer", "adamw", "--lr", "0.001"};
  const auto go_on = [&](int ranks, const Words& more) {
    const Result result = Program(by_ranks(ranks, on_gpu(words, dir / "run") + more)).wait();
    EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
    EXPECT_EQ(result.out.find("state sharded over 2 ranks") != std::string::npos, ranks == 2) << result.out;
  };
  go_on(2, {"--shard-optimizer", "on", "--steps", "10"});
  go_on(1, {"--resume", dir / "run", "--steps", "20"});
  EXPECT_EQ(final_of(dir / "run").at("weights_sha256"),
            trained(1, words + Words{"--steps", "20"}).at("weights_sha256"));
}

// The stages of a pipeline, each on its rank, send each other activations and gradients.
TEST(GpuRanks, APipelineHasTheBitsOfOneRank) {
  LOCKSTEP_NEEDS_GPU();
  for (const Words& recipe :
       {Words{"mnist", "--batch-size", "16", "--steps", "20", "--optimizer", "adamw"},
        Words{"imagenet", "--arch", "alexnet", "--size", "64", "--batch-size", "8", "--steps", "4"},
        Words{"imagenet", "--arch", "resnet18", "--size", "64", "--batch-size", "8", "--steps", "4", "--amp", "O2",
              "--dtype", "fp16"}}) {
    const auto one = trained(1, recipe);
    const auto stages = trained(2, recipe + Words{"--parallel", "pipeline"}, "a pipeline of 2 stages");
    EXPECT_EQ(one.at("weights_sha256"), stages.at("weights_sha256")) << recipe[2];
    EXPECT_EQ(one.at("loss"), stages.at("loss")) << recipe[2];
  }
}

// Measured by events of the device: NCCL works while backward does.
TEST(GpuRanks, BackwardHidesCommunication) {
  LOCKSTEP_NEEDS_GPU();
  const TempDir dir;
  const Words words = {"imagenet", "--arch", "resnet18", "--size", "64", "--batch-size", "16", "--steps", "12"};
  const Result result = Program(by_ranks(2, on_gpu(words, dir / "run"))).wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto records = records_of(dir / "run", "comm");
  ASSERT_FALSE(records.empty());
  const auto overlap = records.back().at("overlap").get<double>();
  RecordProperty("overlap", std::to_string(overlap));
  EXPECT_GT(overlap, 0);
  EXPECT_LE(overlap, 1);
}

// The wait of the other rank's host and GPU ends, and says for whom it was.
TEST(GpuRanks, ARankThatIsGoneOrStandsStillIsNamed) {
  LOCKSTEP_NEEDS_GPU();
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const TempDir dir;
    Program program(by_ranks(2, on_gpu({"mnist", "--batch-size", "16", "--steps", "100000", "--epochs", "100000",
                                        "--timeout", "10", "--log-every", "1"},
                                       dir / "run")));
    const auto trains = [&] { return !steps_logged(dir / "run").empty(); };
    ASSERT_TRUE(eventually(trains, std::chrono::seconds(120))) << program.err();
    signal_to(worker_of(program, 1), signal);
    const Result result = program.wait(std::chrono::seconds(120));
    EXPECT_EQ(result.exit_code, signal == SIGKILL ? 128 + SIGKILL : CommError::kExitCode) << result.err;
    EXPECT_LT(result.seconds, 110) << "it was not killed by this test";
    EXPECT_THAT(result.err, testing::ContainsRegex("error: [^\n]*rank 1")) << result.out;
    EXPECT_TRUE(program.all_gone(std::chrono::seconds(20)));
  }
}

TEST(GpuRanks, CollectivesMoveAndAddWhatTheyShould) {
  LOCKSTEP_NEEDS_GPU();
  const Result result =
      Program(by_ranks(2, {"bench", "allreduce", "--backend", "nccl", "--sizes", "4K,4M", "--json"})).wait();
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, HasSubstr("\"nccl\""));
}

}  // namespace
}  // namespace lockstep::e2e
