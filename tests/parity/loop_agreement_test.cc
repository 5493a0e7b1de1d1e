// A checkpoint that does not fit the loop of one rank alone is refused by all of them.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/loop/state.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/sharded_optimizer.h"
#include "support/worlds.h"

namespace lockstep::loop {
namespace {

using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::refusal;

// Its checks come before collectives of the sharded optimizer's.
struct ShardedLoop {
  ShardedLoop(const std::shared_ptr<World>& world, int64_t size, bool averages = true)
      : found(at::zeros({size})),
        ddp(net.ptr(), world),
        optimizer(optim::make_optimizer("adamw", net->parameters(), {{"lr", 0.1}}), world->communicator()),
        state(*world, step, {{"found", found}, {"model", ddp}, {"optimizer", optimizer}}) {
    if (averages) optimizer.keep_average(0.9);
  }
  void train() {
    for (auto& parameter : net->parameters()) parameter.mutable_grad() = at::ones_like(parameter);
    optimizer.update({});
    ++step;
  }

  torch::nn::Linear net{40, 30};
  at::Tensor found;
  parallel::DistributedDataParallel ddp;
  parallel::ShardedOptimizer optimizer;
  int64_t step = 0;
  State state;
};

RANK_PROGRAM(fits_all_but_one) {
  const auto world = join_world(context);
  const bool is_last = context.rank == context.size - 1;
  checkpoint::CheckpointStore store(context.argument);
  ShardedLoop saved(world, 2);
  saved.train();
  saved.state.save(store);
  ShardedLoop shape(world, is_last ? 3 : 2);
  EXPECT_THAT(refusal([&] { shape.state.load(store); }),
              HasSubstr(cat("rank ", context.size - 1, ": ", context.argument, "/step-000001.pt: found")));
  ShardedLoop average(world, 2, /*averages=*/!is_last);
  EXPECT_THAT(refusal([&] { average.state.load(store); }), HasSubstr("this loop keeps none; call keep_average()"));
  EXPECT_EQ(shape.step, 0);
  world->communicator().barrier();  // and the ranks are still together
  ShardedLoop same(world, 2);
  EXPECT_TRUE(same.state.load(store));
  EXPECT_EQ(same.step, 1);
  world->communicator().barrier();
}

TEST(LoopAgreement, AllRanksRefuseWhatDoesNotFitOne) {
  const std::string folder = testing::TempDir() + "loop_agreement." + std::to_string(getpid());
  for (const int size : {2, 4}) expect_ranks_pass("fits_all_but_one", size, cat(folder, '.', size));
  for (const int size : {2, 4}) std::filesystem::remove_all(cat(folder, '.', size));
}

RANK_PROGRAM(steps_by_one) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  parallel::DistributedDataParallel ddp(net.ptr(), world);
  int64_t step = 0;
  State state(*world, step, {{"model", ddp}});
  std::unique_ptr<optim::FusedOptimizer> optimizer;
  if (context.rank == 1) {  // steps the network, and is not listed
    optimizer = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.1}});
    for (auto& parameter : net->parameters()) parameter.mutable_grad() = at::ones_like(parameter);
    optimizer->update({});
  }
  EXPECT_THAT(refusal([&] { state.value(); }), HasSubstr("rank 1: loop state: no part has the optimizer"));
}

TEST(LoopAgreement, AllRanksRefuseToSaveWhatOneLacks) { expect_ranks_pass("steps_by_one", 2); }

}  // namespace
}  // namespace lockstep::loop
