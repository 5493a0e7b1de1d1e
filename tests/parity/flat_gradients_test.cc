// Gradients that lie in one piece of memory for a bucket, as they do over a network: loops treat them as any others.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <memory>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/comm/single_communicator.h"
#include "lockstep/optim/rules/sgd.h"
#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing_support::expect_ranks_pass;

// One lane a rank: the gradient of each, divided by their number, is added to those before.
void set_mean_gradient(torch::nn::Linear& alone, int ranks, double factor) {
  std::vector<Tensor> sums;
  for (int rank = 0; rank < ranks; ++rank) {
    alone->zero_grad();
    (loss_of(alone, rank, factor) / ranks).backward();
    for (size_t i = 0; i < alone->parameters().size(); ++i) {
      const Tensor gradient = alone->parameters()[i].grad();
      if (rank == 0) {
        sums.push_back(gradient.clone());
      } else {
        sums[i].add_(gradient);
      }
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) alone->parameters()[i].mutable_grad() = sums[i];
}

template <typename MakeOptimizer>
void expect_weights_of_one_process(const std::shared_ptr<World>& world, MakeOptimizer&& optimizer_of) {
  for (const bool by_run : {false, true}) {
    for (const bool to_none : {true, false}) {
      auto net = linear(1), alone = linear(1);
      DistributedDataParallel ddp(net.ptr(), world);
      auto optimizer = optimizer_of(net), optimizer_alone = optimizer_of(alone);
      for (int step = 0; step < 3; ++step) {
        if (by_run) {
          ddp.run(one_lane_each(*world, step), [&](size_t) { return loss_of(net, world->rank(), step + 1); });
        } else {
          loss_of(net, world->rank(), step + 1).backward();
        }
        optimizer.step();
        optimizer.zero_grad(to_none);
        set_mean_gradient(alone, world->size(), step + 1);
        optimizer_alone.step();
      }
      EXPECT_TRUE(at::equal(net->weight, alone->weight)) << by_run << to_none;
      EXPECT_TRUE(at::equal(net->bias, alone->bias)) << by_run << to_none;
    }
  }
}

RANK_PROGRAM(plain_loop) {
  const auto world = join_over(context);
  expect_weights_of_one_process(
      world, [](torch::nn::Linear& net) { return torch::optim::SGD(net->parameters(), /*lr=*/0.125); });
  expect_weights_of_one_process(
      world, [](torch::nn::Linear& net) { return optim::SGD(net->parameters(), {.lr = 0.125, .momentum = 0.5}); });
}
TEST(FlatGradients, AnyOptimizersZeroGradClearsThem) {
  expect_ranks_pass("plain_loop", 2);
  expect_ranks_pass("plain_loop", 2, network());
}

// The weights after some steps in fp16 with a loss scale, of which the first overflows.
Tensor train_scaled(const std::shared_ptr<World>& world, int lanes) {
  auto net = linear(1);
  optim::SGD optimizer(net->parameters(), {.lr = 0.125});
  amp::MixedPrecision mixed({net.get()}, {&optimizer}, {.opt_level = amp::OptLevel::kO1, .dtype = at::kHalf});
  DistributedDataParallel ddp(net.ptr(), world);
  int skipped = 0;
  for (int64_t number = 0; number < 5; ++number) {
    StepPlan step{.number = number, .samples = lanes, .lanes = {}};
    const auto own = world->own_lanes(lanes);
    for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, 1});
    const auto result = ddp.run(
        step,
        [&](size_t i) {
          const Tensor loss = loss_of(net, step.lanes[i].index).to(at::kFloat);
          return number == 0 ? loss * HUGE_VAL : loss;
        },
        mixed);
    skipped += mixed.step(optimizer, result).skipped ? 1 : 0;
    mixed.zero_grad(optimizer);
  }
  EXPECT_EQ(skipped, 1);
  return at::cat({net->weight.detach().flatten(), net->bias.detach()});
}

RANK_PROGRAM(scaled_loop) {
  const auto world = join_over(context);
  const auto alone = std::make_shared<World>(world, std::make_shared<comm::SingleCommunicator>());
  EXPECT_TRUE(at::equal(train_scaled(world, context.size), train_scaled(alone, context.size)));
}
TEST(FlatGradients, ALossScaleIsHeldInThoseOfOneStep) {
  expect_ranks_pass("scaled_loop", 2);
  expect_ranks_pass("scaled_loop", 2, network());
}

// Embeddings of one sample, whose gradients libtorch gives one memory.
struct EmbeddingsImpl : torch::nn::Module {
  Tensor loss(int rank, double factor) const {
    const Tensor sum = at::ones({1, 3}) + position.unsqueeze(0) + kind.unsqueeze(0);
    return (sum * at::full({1, 3}, (rank + 1) * factor)).sum();
  }
  Tensor position = register_parameter("position", at::zeros({3})), kind = register_parameter("kind", at::zeros({3}));
};

// Adds up gradients of 2 and of 3 times the rank's number, counted from one, in each way that loops have.
RANK_PROGRAM(shared_memory_of_two) {
  const auto world = join_over(context);
  const double mean_rank = (context.size + 1) / 2.0;
  enum class Way { kBackwards, kNoSync, kRuns, kRunAndBackward, kClipped, kLast };
  for (int way = 0; way < static_cast<int>(Way::kLast); ++way) {
    const auto net = std::make_shared<EmbeddingsImpl>();
    DistributedDataParallel ddp(net, world);
    const auto run = [&](double factor) {
      ddp.run(one_lane_each(*world), [&](size_t) { return net->loss(context.rank, factor); });
    };
    const auto backward = [&](double factor) { net->loss(context.rank, factor).backward(); };
    double expected = 5 * mean_rank;
    switch (static_cast<Way>(way)) {
      case Way::kBackwards:
        backward(2), backward(3);
        break;
      case Way::kNoSync: {
        {
          const auto no_sync = ddp.no_sync();
          backward(2);
        }
        backward(3);
        break;
      }
      case Way::kRuns:
        run(2), run(3);
        break;
      case Way::kRunAndBackward:
        run(2), backward(3);
        break;
      default:
        backward(5);
        for (const Tensor& each : net->parameters()) each.grad().mul_(0.5);  // as a clip does
        expected /= 2;
    }
    for (const Tensor& each : net->parameters()) {
      EXPECT_TRUE(at::allclose(each.grad(), at::full({3}, expected))) << way << each.grad() << expected;
    }
  }
}
TEST(FlatGradients, MemoryThatTwoShareIsAddedToOnce) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("shared_memory_of_two", ranks);
  for (const int ranks : {1, 2}) expect_ranks_pass("shared_memory_of_two", ranks, network());
}

}  // namespace
}  // namespace lockstep::parallel
