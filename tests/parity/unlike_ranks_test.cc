// Loops whose ranks or networks part without a sign: other samples, other weights, a network that nobody steps.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/loop/evaluate.h"
#include "lockstep/loop/make_loader.h"
#include "lockstep/loop/state.h"
#include "lockstep/parallel/tensor/layers.h"
#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::Ranks;

// Two wrapped networks, one loss, one optimizer in mixed precision. argument: what makes it right, if anything.
RANK_PROGRAM(left_out_network) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Linear net(4, 3), other(3, 3);
  std::vector<Tensor> weights = net->parameters();
  if (context.argument != "own optimizer") {
    for (const Tensor& weight : other->parameters()) weights.push_back(weight);
  }
  if (context.argument == "frozen") {
    for (const Tensor& weight : other->parameters()) weight.requires_grad_(false);
  }
  torch::optim::SGD optimizer(weights, 0.1);
  amp::MixedPrecision mixed({net.get(), other.get()}, {optimizer}, {});
  DistributedDataParallel first(net.ptr(), world), second(other.ptr(), world);
  for (int64_t number = 0; number < 3; ++number) {
    const auto loss = [&](size_t) { return other->forward(net->forward(at::ones({2, 4}))).square().mean(); };
    const StepPlan step = plan_of_lanes(*world, number, 4);
    const auto result = context.argument == "together"
                            ? DistributedDataParallel::run_together({&first, &second}, step, loss, mixed)
                            : first.run(step, loss, mixed);
    mixed.step(optimizer, result);
    mixed.zero_grad(optimizer);
  }
}
TEST(UnlikeRanks, ANetworkThatRunLeavesOutIsNotLeftAsItIsInSilence) {
  for (const int ranks : {1, 2}) {
    for (const auto& result : Ranks("left_out_network", ranks).wait()) {
      EXPECT_EQ(result.exit_code, 2) << result.output;
      EXPECT_THAT(result.output, HasSubstr("has weights of another wrapped network, which the loss reaches"));
    }
    for (const char* right : {"together", "own optimizer", "frozen"}) {
      expect_ranks_pass("left_out_network", ranks, right);
    }
  }
}

// argument: what rank 1 has otherwise.
RANK_PROGRAM(other_loader) {
  const auto world = join_world(context);
  const bool other = context.rank == 1;
  at::manual_seed(1);
  torch::nn::Linear net(4, 3);
  DistributedDataParallel ddp(net.ptr(), world);
  const int64_t samples = other && context.argument == "data" ? 21 : 20;
  const auto data = std::make_shared<data::TensorDataset>(at::rand({samples, 4}), at::zeros({samples}, at::kLong));
  const uint64_t seed = other && context.argument == "seed" ? 8 : 7;
  data::Loader loader = loop::make_loader(*world, data, {.lanes = 2, .batch_size = 3, .seed = seed});
  if (other && context.argument == "place") loader.next();
  for (int64_t number = 0; number < 3; ++number) {
    ddp.run(number, loader.next(), [&](const auto& lane) { return net->forward(lane.data()).square().mean(); });
    net->zero_grad();
  }
}
TEST(UnlikeRanks, LoadersThatGoOtherWaysAreSeen) {
  for (const char* what : {"seed", "place"}) {
    for (const auto& result : Ranks("other_loader", 2, what).wait()) {
      EXPECT_EQ(result.exit_code, 2) << what << result.output;
      EXPECT_THAT(result.output,
                  HasSubstr("its loader and those of other ranks go through data of another size, in another order"));
    }
  }
  for (const auto& result : Ranks("other_loader", 2, "data").wait()) EXPECT_NE(result.exit_code, 0) << result.output;
  expect_ranks_pass("other_loader", 2, "none");
}

// Rank 0 evaluates alone, and forgets train() afterwards.
RANK_PROGRAM(other_mode) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3));
  DistributedDataParallel ddp(net.ptr(), world);
  const auto run = [&](int64_t step) {
    net->zero_grad();
    ddp.run(plan_of_lanes(*world, step, 4), [&](size_t) { return net->forward(at::rand({6, 4})).square().mean(); });
  };
  run(0);
  if (context.argument == "all" || (context.rank == 0 && context.argument == "one")) net->eval();
  run(1);
}
TEST(UnlikeRanks, AModeThatOneRankAloneIsInIsSeen) {
  for (const auto& result : Ranks("other_mode", 2, "one").wait()) {
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr("are in different modes: train() or eval() was called on some ranks only"));
  }
  expect_ranks_pass("other_mode", 2, "all");
  expect_ranks_pass("other_mode", 1, "one");
}

// argument: who puts other weights in for the evaluation, as averages.
RANK_PROGRAM(other_averages) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Linear net(4, 3);
  DistributedDataParallel ddp(net.ptr(), world);
  ddp.run(plan_of_lanes(*world, 0, 4), [&](size_t) { return loss_of(net, context.rank); });
  {
    const at::NoGradGuard no_grad;
    if (context.argument == "all" || context.rank == 0) net->weight.mul_(0.5);
  }
  const data::TensorDataset data(at::rand({12, 4}), at::zeros({12}, at::kLong));
  loop::evaluate(ddp, data, [&](const data::Batch& batch) -> loop::Sums {
    return {{"mean", net->forward(batch.data()).sum().item<double>()}};
  });
}
TEST(UnlikeRanks, WeightsThatDifferAreNotEvaluated) {
  for (const auto& result : Ranks("other_averages", 2, "one").wait()) {
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr("evaluate: the network's weights on rank 1 differ from rank 0's"));
  }
  expect_ranks_pass("other_averages", 2, "all");
}

// Of a static graph the second step leaves out a layer.
RANK_PROGRAM(graph_that_changes) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Linear first(4, 4), second(4, 3);
  torch::nn::Sequential net(first, second);
  DistributedDataParallel ddp(net.ptr(), world, {.static_graph = true});
  for (int64_t step = 0; step < 2; ++step) {
    net->zero_grad();
    const auto loss = [&](int) {
      const at::Tensor x = at::rand({6, 4});
      return second->forward(step == 0 ? first->forward(x) : x).square().mean();
    };
    if (context.argument == "by hand") {
      loss(0).backward();
    } else {
      ddp.run(plan_of_lanes(*world, step, 4), [&](size_t) { return loss(0); });
    }
  }
}
TEST(UnlikeRanks, AStaticGraphThatChangesIsSeen) {
  for (const char* how : {"run", "by hand"}) {
    for (const int ranks : {1, 2}) {
      if (ranks == 1 && how == std::string("by hand")) continue;  // nothing is folded
      for (const auto& result : Ranks("graph_that_changes", ranks, how).wait()) {
        EXPECT_EQ(result.exit_code, 2) << how << result.output;
        EXPECT_THAT(result.output, HasSubstr("got no gradient where the first step had 1"));
      }
    }
  }
}

// Rank 1 changes one element that no step looks at. argument: what the network was wrapped with.
RANK_PROGRAM(other_weights) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Linear net(4, 3);
  DistributedDataParallel ddp(net.ptr(), world, {.broadcast_state = context.argument != "own weights"});
  if (context.argument != "by hand")
    ddp.run(plan_of_lanes(*world, 0, 4), [&](size_t) { return loss_of(net, context.rank); });
  const at::NoGradGuard no_grad;
  if (context.rank == 1) net->weight[0][1] += 1;
  int64_t step = 3;
  loop::State state(*world, step, {{"model", ddp}});
  state.value();
}
TEST(UnlikeRanks, WeightsThatDifferAreNotSaved) {
  for (const auto& result : Ranks("other_weights", 2).wait()) {
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr("step 3: the weights of model on rank 1 differ from rank 0's"));
  }
  for (const char* right : {"own weights", "by hand"}) expect_ranks_pass("other_weights", 2, right);
}

// A network that is not wrapped: each rank's own (a pipeline's stage), or an average that all have.
RANK_PROGRAM(network_of_its_own) {
  const auto world = join_world(context);
  at::manual_seed(context.argument == "stage" ? 1 + static_cast<uint64_t>(context.rank) : 1);
  torch::nn::Linear net(4, 4);
  int64_t step = 3;
  loop::State state(*world, step, {{"model", *net}});
  state.value();
}
TEST(UnlikeRanks, AStageIsNotSavedAsTheNetworkOfAllRanks) {
  for (const auto& result : Ranks("network_of_its_own", 2, "stage").wait()) {
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr("the weights of model on rank 1 differ from rank 0's"));
    EXPECT_THAT(result.output, HasSubstr("as a pipeline's stages, which its ranks save one by one"));
  }
  expect_ranks_pass("network_of_its_own", 2, "average");
}

// Layers of which each rank has a part.
RANK_PROGRAM(divided_network) {
  const auto world = join_world(context);
  torch::nn::Linear whole(4, 4);
  torch::nn::Sequential net(tensor::ColumnParallelLinear(whole, world->communicator()));
  const auto replicas = std::make_shared<World>(world, world->communicator().make_group({context.rank}));
  DistributedDataParallel ddp(net.ptr(), replicas);
  int64_t step = 3;
  loop::State state(*world, step, {{"model", ddp}});
  EXPECT_THAT(testing_support::refusal([&] { state.value(); }), HasSubstr("layers are divided among ranks"));
}
TEST(UnlikeRanks, DividedLayersAreNotSavedAsWholeOnes) { expect_ranks_pass("divided_network", 2); }

}  // namespace
}  // namespace lockstep::parallel
