#include "lockstep/apps/commands/train_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Words launched(const Words& words) {
  return launch_of_train(
             words, [] { return std::string("worker"); }, /*cores=*/6)
      .value_or(Words{});
}
std::string refused(const Words& words) {
  return testing_support::refusal([&] { launched(words); });
}

TEST(TrainNodes, OneMachinesLineStaysAsItIs) {
  EXPECT_TRUE(launched({"mnist", "--nproc", "2", "--max-restarts", "3"}).empty());
}

TEST(TrainNodes, TheNodesFlagsAreTheLaunchers) {
  EXPECT_THAT(launched({"mnist", "--nnodes", "2", "--lr=0.1", "--node_rank=1", "--master-addr", "a", "--nproc", "4"}),
              ElementsAre("--nnodes=2", "--node-rank=1", "--master-addr=a", "--nproc-per-node=4", "--max-restarts=0",
                          "worker", "train", "mnist", "--lr=0.1"));
}

TEST(TrainNodes, TheLauncherHasTheLimitsOfTimeToo) {
  EXPECT_THAT(launched({"mnist", "--nnodes=2", "--nproc=1", "--grace", "30", "--timeout=60"}),
              ElementsAre("--nnodes=2", "--nproc-per-node=1", "--max-restarts=0", "--grace=30", "--timeout=60",
                          "worker", "train", "mnist", "--grace", "30", "--timeout=60"));
}

TEST(TrainNodes, AtEtcdFailedRanksAreStartedAnew) {
  const Words words = {"mnist", "--rdzv-backend=etcd", "--rdzv-endpoint", "e:2379", "--rdzv-id", "r", "--nnodes=1:4"};
  const auto with = [&](const Words& more) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_THAT(launched(with({"--lanes", "16"})),
              ElementsAre("--nnodes=1:4", "--rdzv-id=r", "--rdzv-backend=etcd", "--rdzv-endpoint=e:2379",
                          "--nproc-per-node=4", "--max-restarts=3", "worker", "train", "mnist", "--lanes", "16"));
  EXPECT_THAT(launched(with({"--lanes=8", "--max-restarts", "7"})), testing::Contains("--max-restarts=7"));
  EXPECT_THAT(refused(with({"--resume", "runs/a"})), HasSubstr("or the run that is resumed, is not read here"));
  EXPECT_THAT(refused(words), HasSubstr("add it, as in --lanes 16"));
}

TEST(TrainNodes, ANodeHasAsManyRanksAsCoresAndLanesAllow) {
  const auto nproc = [](const Words& more) {
    Words words = {"mnist", "--nnodes=2"};
    words.insert(words.end(), more.begin(), more.end());
    return launched(words).at(1);
  };
  EXPECT_EQ(nproc({}), "--nproc-per-node=6");
  EXPECT_EQ(nproc({"--lanes", "4"}), "--nproc-per-node=2");
  EXPECT_EQ(nproc({"--lanes=12"}), "--nproc-per-node=6");
  EXPECT_EQ(nproc({"--lanes", "3"}), "--nproc-per-node=auto") << "the ranks say what is wrong";
  EXPECT_EQ(nproc({"--device", "cuda"}), "--nproc-per-node=auto");
  EXPECT_EQ(nproc({"--config=run.toml"}), "--nproc-per-node=auto") << "which may say the device";
}

TEST(TrainNodes, HelpIsTrains) { EXPECT_TRUE(launched({"mnist", "--nnodes", "2", "--help"}).empty()); }

TEST(TrainNodes, WhatIsOfOneMachineIsRefused) {
  EXPECT_THAT(refused({"mnist", "--nnodes", "2", "--detach"}), HasSubstr("stays in the foreground"));
  EXPECT_THAT(refused({"mnist", "--nnodes", "2", "--nproc", "1:4"}),
              HasSubstr("--nproc 1:4: expected a number or auto"));
  EXPECT_THAT(refused({"mnist", "--nnodes"}), HasSubstr("--nnodes: expected a value after it"));
}

}  // namespace
}  // namespace lockstep::apps
