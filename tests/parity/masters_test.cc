// The fp32 masters of weights that something else than their optimizer has written, on real ranks.
#include <torch/optim/sgd.h>

#include <memory>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/optim/rules/sgd.h"
#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

Tensor narrow_loss(torch::nn::Linear& net, int rank) {
  return net->forward(input(rank).to(at::kBFloat16)).to(at::kFloat).square().mean();
}

// Argument: whose optimizer, and who sends rank 0's weights: "ours wrap", "libtorch wrap", "ours broadcast" …
RANK_PROGRAM(written_on_rank_0) {
  const auto world = join_world(context);
  auto net = linear(1);
  optim::SGD ours(net->parameters(), {.lr = 0.01});
  torch::optim::SGD libtorchs(net->parameters(), 0.01);
  optim::OptimizerRef optimizer = ours;
  if (context.argument.starts_with("libtorch")) optimizer = libtorchs;
  amp::MixedPrecision mixed({net.get()}, {optimizer}, {.opt_level = amp::OptLevel::kO2});
  auto ddp = std::make_unique<DistributedDataParallel>(net.ptr(), world);
  const auto step = [&](int64_t number) {
    const auto result = ddp->run(
        one_lane_each(*world, number), [&](size_t) { return narrow_loss(net, context.rank); }, mixed);
    mixed.step(optimizer, result);
    mixed.zero_grad(optimizer);
  };
  step(0);
  const at::NoGradGuard no_grad;
  if (context.rank == 0) net->weight.fill_(5);
  if (context.argument.ends_with("wrap")) {
    ddp = std::make_unique<DistributedDataParallel>(net.ptr(), world);
  } else {
    world->communicator().broadcast(net->weight, 0);
  }
  {
    const at::AutoGradMode grad(true);
    step(1);
    step(2);  // in which weights that differ between ranks are an error
  }
  for (const auto& master : mixed.master_params(optimizer)) EXPECT_TRUE(same_on_all_ranks(master, *world));
  EXPECT_TRUE(same_on_all_ranks(net->weight.view(at::kShort), *world));
  EXPECT_GT(net->weight.min().item<float>(), 4) << "the weights that were written";
}
TEST(Masters, FollowWeightsThatWereWrittenOnRankZeroAndSent) {
  for (const char* how : {"ours wrap", "libtorch wrap", "ours broadcast", "libtorch broadcast"}) {
    expect_ranks_pass("written_on_rank_0", 2, how);
  }
}

// An optimizer's own masters, without MixedPrecision. Argument: "join", or "wrap" after rank 0 has loaded masters.
RANK_PROGRAM(kept_masters) {
  const auto world = join_world(context);
  auto net = linear(1);
  net->to(at::kBFloat16);
  optim::SGD optimizer(net->parameters(), {.lr = 0.01});
  optimizer.keep_masters();
  if (context.argument == "wrap" && context.rank == 0) {
    optimizer.load_masters({at::full({3, 4}, 1.001), at::full({3}, 2.001)});
  }
  DistributedDataParallel ddp(net.ptr(), world);
  const auto step = [&] {
    optimizer.zero_grad();
    narrow_loss(net, context.rank).backward();
    optimizer.step();
  };
  const auto expect_same = [&] {
    for (const Tensor& master : optimizer.masters()) EXPECT_TRUE(same_on_all_ranks(master, *world));
    EXPECT_TRUE(same_on_all_ranks(net->weight.view(at::kShort), *world));
  };
  if (context.argument == "wrap") EXPECT_EQ(optimizer.masters()[0][0][0].item<float>(), 1.001F);
  for (int turn = 0; context.argument == "join" && turn < 2; ++turn) {
    ddp.join([&] {
      for (int i = 0; i < 2 + 5 * context.rank; ++i) step();
    });
    expect_same();
  }
  step();
  expect_same();
}
TEST(Masters, ThatAnOptimizerKeepsAreThoseOfTheLongestRankAfterAJoin) { expect_ranks_pass("kept_masters", 2, "join"); }
TEST(Masters, ThatAnOptimizerKeepsAreRankZerosAfterWrapping) { expect_ranks_pass("kept_masters", 2, "wrap"); }

}  // namespace
}  // namespace lockstep::parallel
