// The replicas of one process beside ranks: the same losses, at every opt level, and both together.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <sstream>
#include <string>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/replicas/data_parallel.h"
#include "lockstep/parallel/sync_batch_norm.h"
#include "lockstep/world/testing/nodes.h"
#include "pipeline_nets.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using testing_support::expect_ranks_pass;
using testing_support::init_on_nodes;
using testing_support::join_world;
using testing_support::nodes;
using Net = torch::nn::SequentialImpl;

constexpr int64_t kSamples = 8;

std::shared_ptr<Net> make_net() { return whole_net().ptr(); }
at::Tensor images(int64_t step) {
  at::manual_seed(100 + static_cast<uint64_t>(step));
  return at::rand({kSamples, 1, 8, 8});
}
at::Tensor labels() { return at::arange(kSamples).remainder(5); }

// The losses of some steps: each rank of the world has its part of the batch, which it divides among its replicas; none
// for the network without DataParallel.
std::vector<double> losses_of(const std::shared_ptr<World>& world, size_t replicas, const amp::Options& options,
                              int64_t steps) {
  auto net = make_net();
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
  amp::MixedPrecision mixed({net.get()}, {sgd}, options);
  net->eval();  // each sample by itself
  std::shared_ptr<DataParallel<Net>> parallel;
  if (replicas > 0) {
    parallel = std::make_shared<DataParallel<Net>>(net, DataParallelOptions{.device_ids = on_cpu(replicas)});
    parallel->eval();
  }
  DistributedDataParallel ddp(parallel ? std::static_pointer_cast<torch::nn::Module>(parallel) : net, world);
  const int64_t own = kSamples / world->size(), first = world->rank() * own;
  std::vector<double> losses;
  for (int64_t step = 0; step < steps; ++step) {
    mixed.zero_grad(sgd);
    const at::Tensor x = images(step).narrow(0, first, own), y = labels().narrow(0, first, own);
    const auto loss_of = [&](size_t) {
      return at::cross_entropy_loss(parallel ? mixed.forward(parallel, x) : mixed.forward(net, x), y);
    };
    const auto result = ddp.run({.number = step, .samples = kSamples, .lanes = {{world->rank(), own}}}, loss_of, mixed);
    mixed.step(sgd, result);
    losses.push_back(result.loss);
  }
  return losses;
}

// argument: opt level, dtype.
RANK_PROGRAM(replicas_for_ranks) {
  const auto world = join_world(context);
  const auto alone = std::make_shared<World>(world, world->communicator().make_group({world->rank()}));
  std::istringstream words(context.argument);
  std::string level, dtype;
  words >> level >> dtype;
  const amp::Options options{.opt_level = static_cast<amp::OptLevel>(level[1] - '0'),
                             .dtype = dtype == "fp16" ? at::kHalf : at::kBFloat16};
  const bool exact = level == "O0";
  const int64_t steps = exact ? 40 : 10;
  const std::vector<double> of_ranks = losses_of(world, 0, options, steps);
  const auto expect_close = [&](const std::vector<double>& losses) {
    for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], of_ranks[i], exact ? 1e-5 : 2e-2) << i;
  };
  expect_close(losses_of(alone, static_cast<size_t>(world->size()), options, steps));
  expect_close(losses_of(alone, kSamples, options, steps));
  expect_close(losses_of(world, 2, options, steps));
}
TEST(Replicas, HaveTheLossesOfRanks) {
  expect_ranks_pass("replicas_for_ranks", 1, "O0");
  expect_ranks_pass("replicas_for_ranks", 2, "O0");
  expect_ranks_pass("replicas_for_ranks", 4, "O0");
}
TEST(Replicas, HaveTheLossesOfRanksAtEveryOptLevel) {
  for (const char* level : {"O1 bf16", "O1 fp16", "O2 bf16", "O2 fp16", "O3 bf16", "O3 fp16"}) {
    for (const int ranks : {2, 4}) expect_ranks_pass("replicas_for_ranks", ranks, level);
  }
}

// Ranks over a network, each with replicas.
RANK_PROGRAM(replicas_on_nodes) {
  const auto world = init_on_nodes(context);
  const auto alone = std::make_shared<World>(world, world->communicator().make_group({world->rank()}));
  const amp::Options options{.opt_level = amp::OptLevel::kO0};
  const std::vector<double> of_ranks = losses_of(world, 2, options, 40), of_one = losses_of(alone, 0, options, 40);
  for (size_t i = 0; i < of_one.size(); ++i) EXPECT_NEAR(of_ranks[i], of_one[i], 1e-5) << i;
}
TEST(Replicas, HaveTheLossesOfOneProcessBetweenHosts) {
  expect_ranks_pass("replicas_on_nodes", 2, nodes("gloo", {1, 1}));
}

// Its argument is as above. SyncBatchNorm over replicas is that over ranks under mixed precision, too.
RANK_PROGRAM(joined_statistics_in_16_bits) {
  const auto world = join_world(context);
  const amp::Options options{.opt_level = static_cast<amp::OptLevel>(context.argument[1] - '0'),
                             .dtype = at::kBFloat16};
  auto of_ranks = make_net(), of_replicas = make_net();
  convert_sync_batchnorm(*of_ranks, world->communicator());
  torch::optim::SGD first(of_ranks->parameters(), 0.02), second(of_replicas->parameters(), 0.02);
  amp::MixedPrecision mixed({of_ranks.get()}, {first}, options), other({of_replicas.get()}, {second}, options);
  const auto alone = std::make_shared<World>(world, world->communicator().make_group({world->rank()}));
  const auto parallel = std::make_shared<DataParallel<Net>>(
      of_replicas, DataParallelOptions{.device_ids = on_cpu(4), .sync_batch_norm = true});
  DistributedDataParallel ddp(of_ranks, world), one(parallel, alone);
  const int64_t own = kSamples / world->size(), from = world->rank() * own;
  for (int64_t step = 0; step < 5; ++step) {
    mixed.zero_grad(first);
    other.zero_grad(second);
    const auto a = ddp.run(
        {.number = step, .samples = kSamples, .lanes = {{world->rank(), own}}},
        [&](size_t) {
          return at::cross_entropy_loss(mixed.forward(of_ranks, images(step).narrow(0, from, own)),
                                        labels().narrow(0, from, own));
        },
        mixed);
    const auto b = one.run(
        {.number = step, .samples = kSamples, .lanes = {{0, kSamples}}},
        [&](size_t) { return at::cross_entropy_loss(other.forward(parallel, images(step)), labels()); }, other);
    mixed.step(first, a);
    other.step(second, b);
    EXPECT_NEAR(a.loss, b.loss, 2e-2) << step;
  }
}
TEST(Replicas, JoinStatisticsAsRanksDoIn16Bits) {
  for (const char* level : {"O1", "O2", "O3"}) expect_ranks_pass("joined_statistics_in_16_bits", 2, level);
}

// SyncBatchNorm over ranks and over replicas is that of the whole batch.
RANK_PROGRAM(joined_statistics) {
  const auto world = join_world(context);
  auto of_ranks = make_net(), of_replicas = make_net();
  convert_sync_batchnorm(*of_ranks, world->communicator());
  DistributedDataParallel ddp(of_ranks, world);
  DataParallel<Net> parallel(of_replicas, {.device_ids = on_cpu(4), .sync_batch_norm = true});
  const int64_t own = kSamples / world->size(), first = world->rank() * own;
  const auto loss = ddp.run({.number = 0, .samples = kSamples, .lanes = {{world->rank(), own}}}, [&](size_t) {
    return at::cross_entropy_loss(of_ranks->forward(images(0).narrow(0, first, own)), labels().narrow(0, first, own));
  });
  const at::Tensor other = at::cross_entropy_loss(parallel(images(0)), labels());
  other.backward();
  EXPECT_NEAR(loss.loss, other.item<double>(), 1e-5);
  const auto a = of_ranks->parameters(), b = of_replicas->parameters();
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_LT((a[i].grad() - b[i].grad()).abs().max().item<double>(), 1e-5) << i;
  }
}
TEST(Replicas, JoinStatisticsAsRanksDo) { expect_ranks_pass("joined_statistics", 2); }

}  // namespace
}  // namespace lockstep::parallel
