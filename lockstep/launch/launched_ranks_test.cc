#include "lockstep/launch/launched_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::launch {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

constexpr int kPort = 4711;

struct Started {
  SpawnRequest request;
  RankOutput::Options output;
};

Started start(const RankLayout& layout, int local_rank, int nproc, std::vector<std::string> environment = {},
              int attempt = 0) {
  const LaunchedRanks ranks(layout, nproc, attempt, kPort);
  Started started{{.command = {"program", "a${local_rank}b"}, .environment = std::move(environment), .inherited = {}},
                  {}};
  ranks.complete(local_rank, started.request, started.output);
  return started;
}

RankLayout second_node() {
  RankLayout layout;
  layout.first_rank = 2;
  layout.world_size = 4;
  layout.node = 1;
  layout.nodes = 2;
  layout.master_addr = "node0";
  layout.master_port = 29500;
  layout.run_id = "job";
  layout.endpoints = {"a:1", "a:2", "b:1", "b:2"};
  return layout;
}

TEST(LaunchedRanks, HaveTorchrunsVariables) {
  const Started started = start(second_node(), 1, 2, {"RANK=9", "TORCHELASTIC_ERROR_FILE=x"}, 3);
  EXPECT_THAT(started.request.environment,
              IsSupersetOf({"RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=1",
                            "GROUP_WORLD_SIZE=2", "ROLE_RANK=3", "ROLE_NAME=default", "ROLE_WORLD_SIZE=4",
                            "MASTER_ADDR=node0", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=job",
                            "TORCHELASTIC_RESTART_COUNT=3", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
                            "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT"}));
  EXPECT_THAT(started.request.environment, Not(Contains(StartsWith("TORCHELASTIC_ERROR_FILE="))));
  EXPECT_THAT(started.request.environment, Not(Contains("RANK=9")));
  EXPECT_THAT(start({}, 0, 1).request.environment, Contains("MASTER_PORT=4711"));
}

TEST(LaunchedRanks, HavePaddlesVariables) {
  EXPECT_THAT(start(second_node(), 1, 2).request.environment,
              IsSupersetOf({"PADDLE_MASTER=node0:29500", "PADDLE_GLOBAL_SIZE=4", "PADDLE_LOCAL_SIZE=2",
                            "PADDLE_GLOBAL_RANK=3", "PADDLE_LOCAL_RANK=1", "PADDLE_NNODES=2", "PADDLE_TRAINER_ID=3",
                            "PADDLE_TRAINERS_NUM=4", "PADDLE_RANK_IN_NODE=1", "PADDLE_CURRENT_ENDPOINT=b:2",
                            "PADDLE_TRAINER_ENDPOINTS=a:1,a:2,b:1,b:2", "FLAGS_selected_gpus=1"}));
  RankLayout on_cpu;
  on_cpu.on_cpu = true;
  const auto environment = start(on_cpu, 0, 1, {"FLAGS_selected_gpus=3"}).request.environment;
  EXPECT_THAT(environment, Contains("PADDLE_DISTRI_BACKEND=gloo"));
  EXPECT_THAT(environment, Not(Contains(StartsWith("FLAGS_selected_gpus="))));
}

TEST(LaunchedRanks, SeeTheGpusThatWereChosen) {
  RankLayout layout;
  layout.devices = {"2", "5"};
  EXPECT_THAT(start(layout, 1, 2).request.environment,
              IsSupersetOf({"CUDA_VISIBLE_DEVICES=2,5", "FLAGS_selected_gpus=1", "LOCAL_RANK=1"}));
  EXPECT_THAT(start(layout, 0, 1).request.environment,
              IsSupersetOf({"CUDA_VISIBLE_DEVICES=2,5", "FLAGS_selected_gpus=0,1"}));
  layout.virtual_local_rank = true;
  EXPECT_THAT(start(layout, 1, 2).request.environment,
              IsSupersetOf({"CUDA_VISIBLE_DEVICES=5", "LOCAL_RANK=0", "LOCKSTEP_LOCAL_RANK=1"}));
}

TEST(LaunchedRanks, RunOnTheCpusOfTheirLocalRank) {
  RankLayout layout;
  EXPECT_THAT(start(layout, 1, 2).request.cpus, IsEmpty());
  layout.cpus = {{0, 1}, {4}};
  EXPECT_THAT(start(layout, 1, 2).request.cpus, ElementsAre(4));
  EXPECT_THAT(start(layout, 1, 2).request.environment, Contains(cat("LOCKSTEP_NODE_CORES=", usable_cores())));
}

TEST(LaunchedRanks, GetTheLocalRankWhereItIsAskedFor) {
  RankLayout layout;
  EXPECT_THAT(start(layout, 1, 2).request.command, ElementsAre("program", "a1b"));
  layout.local_rank_option = "--local_rank";
  EXPECT_THAT(start(layout, 1, 2).request.command, ElementsAre("program", "--local_rank=1", "a1b"));
  layout.option_place = 2;
  EXPECT_THAT(start(layout, 0, 2).request.command, ElementsAre("program", "a0b", "--local_rank=0"));
}

TEST(LaunchedRanks, Logs) {
  const testing_support::TempDir dir;
  RankLayout layout = second_node();
  layout.logs.folder = dir / "logs";
  EXPECT_EQ(start(layout, 1, 2).output.log_path, dir / "logs/rank3.log");
  EXPECT_EQ(start(layout, 1, 2).output.prefix, "[rank 3] ");
  EXPECT_FALSE(start(layout, 0, 2).output.raw_out) << "it is rank 2";
  layout.logs.kind = LogLayout::Kind::kWorker;
  EXPECT_EQ(start(layout, 1, 2).output.log_path, dir / "logs/workerlog.1");
  EXPECT_THAT(start(layout, 1, 2).request.environment, Contains("PADDLE_LOG_DIR=" + (dir / "logs")));
}

TEST(LaunchedRanks, TorchrunsLogs) {
  const testing_support::TempDir dir;
  RankLayout layout;
  layout.logs = {.kind = LogLayout::Kind::kTorchrun,
                 .folder = dir / "none_1",
                 .redirected = {{LogLayout::kOthers, kBothStreams}},
                 .teed = {{1, kOutStream}},
                 .stdout_filters = {"loss"}};
  const auto first = start(layout, 0, 2, {}, 2).output, second = start(layout, 1, 2, {}, 2).output;
  EXPECT_EQ(first.streams[0].path, dir / "none_1/attempt_2/0/stdout.log");
  EXPECT_EQ(first.streams[1].path, dir / "none_1/attempt_2/0/stderr.log");
  EXPECT_TRUE(first.streams[0].hidden && first.streams[1].hidden);
  EXPECT_FALSE(second.streams[0].hidden) << "it goes to the terminal as well";
  EXPECT_TRUE(second.streams[1].hidden);
  EXPECT_EQ(second.prefix, "[default1]:");
  EXPECT_EQ(first.streams[0].filter, nullptr);
  EXPECT_NE(second.streams[0].filter, nullptr);
  EXPECT_TRUE(std::filesystem::exists(dir / "none_1/attempt_2/filtered_stdout.log"));
  EXPECT_THAT(start(layout, 1, 2).request.environment,
              Contains("TORCHELASTIC_ERROR_FILE=" + (dir / "none_1/attempt_0/1/error.json")));
}

TEST(LaunchedRanks, OnlySomeAreShown) {
  RankLayout layout;
  layout.logs.shown = {1};
  EXPECT_TRUE(start(layout, 0, 2).output.streams[0].hidden);
  EXPECT_FALSE(start(layout, 1, 2).output.streams[1].hidden);
}

}  // namespace
}  // namespace lockstep::launch
