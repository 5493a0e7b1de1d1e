// Synchronous parameter servers in a loop of one's own: push_hook() and a ShardedOptimizer with owners end with the
// weights of data parallelism, and mistakes are named.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "amp_loops.h"
#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/optim/clip.h"
#include "lockstep/parallel/push_hook.h"
#include "lockstep/parallel/shard_plan.h"
#include "loops.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using ::testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

std::vector<int> owners_of(const torch::nn::Module& net, int servers, const World& world) {
  std::vector<int64_t> elements;
  for (const Tensor& each : net.parameters()) elements.push_back(each.numel());
  return plan_servers(elements, std::min(servers, world.size()), world.size());
}

std::unique_ptr<ShardedOptimizer> optimizer_of(const torch::nn::Module& net, World& world, std::vector<int> owners) {
  return std::make_unique<ShardedOptimizer>(optim::make_optimizer("adamw", net.parameters(), {{"lr", 0.02}}),
                                            world.communicator(), std::move(owners));
}

// argument: SERVERS (0: plain data parallelism) LEVEL half|bfloat RUNS FILE [PORT]: a step has so many runs that add
// up. Rank 0 writes the last loss and the weights' hash.
RANK_PROGRAM(push_loop) {
  std::istringstream arguments(context.argument);
  std::string level, dtype, file, port;
  int servers = 0, runs = 0;
  arguments >> servers >> level >> dtype >> runs >> file >> port;
  const auto world = join_over(context, port);
  Net net(1);
  const auto owners = servers > 0 ? owners_of(*net, servers, *world) : std::vector<int>{};
  const auto optimizer = optimizer_of(*net, *world, owners);
  amp::MixedPrecision mixed(
      {net.get()}, {*optimizer},
      {.opt_level = amp::parse_opt_level(level), .dtype = dtype == "half" ? at::kHalf : at::kBFloat16});
  DistributedDataParallel ddp(
      net.ptr(), world,
      {.comm_hook = servers > 0 ? push_hook(net->parameters(), owners) : std::shared_ptr<CommHook>()});
  double loss = 0;
  int skipped = 0;
  for (int64_t number = 0; number < 12; ++number) {
    const StepPlan step = plan(*world, number);
    const double factor = number == 5 && dtype == "half" ? HUGE_VAL : 1;
    StepResult result;
    for (int run = 0; run < runs; ++run) {
      result = ddp.run(
          step, [&](size_t i) { return loss_of(net, step, i, factor); }, mixed);
    }
    for (size_t i = 0; i < owners.size(); ++i) {
      EXPECT_EQ(net->parameters()[i].grad().defined(), owners[i] == context.rank) << "weight " << i;
    }
    skipped += mixed.step(*optimizer, result, {.max_norm = 0.5}).skipped ? 1 : 0;
    mixed.zero_grad(*optimizer);
    loss = result.loss;
  }
  EXPECT_EQ(skipped > 0, dtype == "half");
  if (context.rank == 0) std::ofstream(file) << std::hexfloat << loss << ' ' << checkpoint::weights_sha256(*net);
}

std::string result_of(int ranks, int servers, const std::string& how, const std::string& port = "") {
  const testing_support::TempDir dir;
  expect_ranks_pass("push_loop", ranks, std::to_string(servers) + " " + how + " " + (dir / "result") + " " + port);
  std::ostringstream text;
  text << std::ifstream(dir / "result").rdbuf();
  return text.str();
}

class PushLoop : public ::testing::TestWithParam<const char*> {};

// Clipped, with a step that overflows in half, with runs that add up, and over a network. The norm is added up in
// another order, in fp64; the difference does not reach the fp32 weights here.
TEST_P(PushLoop, EndsWithTheWeightsOfDataParallelism) {
  const std::string data_parallel = result_of(2, 0, GetParam());
  EXPECT_FALSE(data_parallel.empty());
  for (const auto& [ranks, servers] : {std::pair{1, 1}, {2, 1}, {2, 2}, {4, 2}, {4, 4}}) {
    EXPECT_EQ(result_of(ranks, servers, GetParam()), data_parallel) << servers << " of " << ranks << " ranks";
  }
  EXPECT_EQ(result_of(2, 2, GetParam(), network()), data_parallel) << "over a network";
}

INSTANTIATE_TEST_SUITE_P(All, PushLoop,
                         ::testing::Values("O0 bfloat 1", "O0 bfloat 2", "O1 half 1", "O2 half 1", "O2 bfloat 2"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, ' ');
                           return name;
                         });

// The servers' weights move into memory that ranks share once the hook has been made.
RANK_PROGRAM(push_wrapped_first) {
  const auto world = join_world(context);
  Net net(1), whole(1);
  const auto owners = owners_of(*net, 2, *world);
  DistributedDataParallel ddp(net.ptr(), world, {.comm_hook = push_hook(net->parameters(), owners)});
  DistributedDataParallel plain(whole.ptr(), world);
  const auto optimizer = optimizer_of(*net, *world, owners), reference = optimizer_of(*whole, *world, {});
  for (int64_t number = 0; number < 3; ++number) {
    const StepPlan step = plan(*world, number);
    const auto clipped = [](const StepResult& result) {
      return optim::Update{.grad_multiplier = optim::clip_factor(std::sqrt(result.square_sum), 0.5)};
    };
    optimizer->update(clipped(ddp.run(step, [&](size_t i) { return loss_of(net, step, i); })));
    reference->update(clipped(plain.run(step, [&](size_t i) { return loss_of(whole, step, i); })));
  }
  EXPECT_EQ(checkpoint::weights_sha256(*net), checkpoint::weights_sha256(*whole));
}

TEST(PushLoop, TheNetworkMayBeWrappedFirst) { expect_ranks_pass("push_wrapped_first", 2); }

RANK_PROGRAM(push_mistakes) {
  const auto world = join_world(context);
  Net net(1);
  EXPECT_THAT(failure([&] { push_hook(net->parameters(), {0}); }), HasSubstr("1 owners of 6 parameters"));
  const auto owners = owners_of(*net, 2, *world);
  const auto unused = [&] {
    DistributedDataParallel(net.ptr(), world,
                            {.find_unused_parameters = true, .comm_hook = push_hook(net->parameters(), owners)});
  };
  EXPECT_THAT(failure(unused), HasSubstr("and find_unused_parameters or static_graph"));
  EXPECT_THAT(failure([&] {
                push_hook({net->first->weight, net->first->weight}, {0, 1});
              }),
              HasSubstr("parameter 1 is also an earlier one, of another owner"));
  EXPECT_THAT(failure([&] { optimizer_of(*net, *world, {0, 1}); }), HasSubstr("2 owners of 6 parameters"));
  {
    DistributedDataParallel ddp(net.ptr(), world, {.comm_hook = push_hook(net->parameters(), owners)});
    EXPECT_THAT(failure([&] { ddp.backward(loss_of(net, plan(*world, 0), 0)); }),
                HasSubstr("a backward pass by hand with the hook 'push to parameter servers'"));
    EXPECT_THAT(failure([&] {
                  const auto guard = ddp.no_sync();
                  loss_of(net, plan(*world, 0), 0).backward();
                }),
                HasSubstr("a backward pass by hand"));
  }
}

TEST(PushLoop, MistakesAreNamed) { expect_ranks_pass("push_mistakes", 2); }

// argument: WHOSE [PORT]: the optimizer's owners are "none" or "other" ones.
RANK_PROGRAM(push_to_other_owners) {
  std::istringstream arguments(context.argument);
  std::string whose, port;
  arguments >> whose >> port;
  const auto world = join_over(context, port);
  Net net(1);
  const auto optimizer = optimizer_of(*net, *world, whose == "none" ? std::vector<int>{} : owners_of(*net, 1, *world));
  DistributedDataParallel ddp(net.ptr(), world,
                              {.comm_hook = push_hook(net->parameters(), owners_of(*net, 2, *world))});
  const StepPlan step = plan(*world, 0);
  ddp.run(step, [&](size_t i) { return loss_of(net, step, i); });
  const std::string error = failure([&] { optimizer->update({}); });
  if (whose == "none") {
    EXPECT_THAT(error, HasSubstr("is this rank's alone"));
  } else if (context.rank == 0) {
    EXPECT_THAT(error, HasSubstr("has no gradient of it"));
  } else {
    EXPECT_FALSE(error.empty()) << "rank 0 has failed";
  }
}

TEST(PushLoop, OwnersOfTheOptimizerAreTheHooks) {
  for (const std::string whose : {"none", "other"}) {
    expect_ranks_pass("push_to_other_owners", 2, whose);
    expect_ranks_pass("push_to_other_owners", 2, whose + " " + network());
  }
}

// What knows this rank's gradients alone: a clip by hand, and optimizers that are whole.
RANK_PROGRAM(push_and_step_by_hand) {
  const auto world = join_world(context);
  Net net(1);
  DistributedDataParallel ddp(net.ptr(), world,
                              {.comm_hook = push_hook(net->parameters(), owners_of(*net, 2, *world))});
  const StepPlan step = plan(*world, 0);
  ddp.run(step, [&](size_t i) { return loss_of(net, step, i); });
  const auto whole = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.02}});
  torch::optim::SGD libtorchs(net->parameters(), 0.02);
  EXPECT_THAT(failure([&] { optim::clip_grad_norm(net->parameters(), 1); }), HasSubstr("is this rank's alone"));
  EXPECT_THAT(failure([&] { torch::nn::utils::clip_grad_norm_(net->parameters(), 1); }),
              HasSubstr("is this rank's alone"));
  EXPECT_THAT(failure([&] { whole->step(); }), HasSubstr("is this rank's alone"));
  EXPECT_THAT(failure([&] { libtorchs.step(); }), HasSubstr("is this rank's alone"));
}

TEST(PushLoop, StepsByHandAreMistakes) { expect_ranks_pass("push_and_step_by_hand", 2); }

// argument: WHAT of the owners is wrong.
RANK_PROGRAM(push_to_strange_owners) {
  const auto world = join_world(context);
  Net net(1);
  std::vector<int> owners(net->parameters().size(), 0);
  const bool differ = context.argument == "differ";
  if (differ) owners[0] = context.rank;
  if (!differ) owners[0] = context.size;
  const auto* const wanted =
      differ ? "rank 1 names other owners of parameters than rank 0" : "an owner 2 of a parameter";
  EXPECT_THAT(failure([&] { optimizer_of(*net, *world, owners); }), HasSubstr(wanted));
  const auto wrap = [&] {
    DistributedDataParallel(net.ptr(), world, {.comm_hook = push_hook(net->parameters(), owners)});
  };
  EXPECT_THAT(failure(wrap), HasSubstr(wanted));
}

TEST(PushLoop, OwnersAreRanksAndTheSameOnAll) {
  for (const char* what : {"differ", "stranger"}) expect_ranks_pass("push_to_strange_owners", 2, what);
}

}  // namespace
}  // namespace lockstep::parallel
