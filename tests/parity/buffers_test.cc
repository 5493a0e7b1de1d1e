// Buffers on several ranks: all hold rank 0's, whatever has changed them.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

struct NormedImpl : torch::nn::Module {
  torch::nn::Linear layer{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  NormedImpl() {
    layer = register_module("layer", linear(1));
    norm = register_module("norm", torch::nn::BatchNorm1d(3));
  }
  Tensor loss(int rank) { return norm->forward(layer->forward(input(rank))).square().mean(); }
};
TORCH_MODULE(Normed);

// As one that recalibrates BatchNorm, on this rank's data.
void forward_outside(Normed& net, int rank) {
  const at::NoGradGuard no_grad;
  net->train();
  net->loss(rank);
}

RANK_PROGRAM(changed_outside) {
  const auto world = join_world(context);
  Normed net;
  DistributedDataParallel ddp(net.ptr(), world);
  const auto step = [&](
                        int64_t number, const std::function<void()>& seen = [] {}) {
    net->zero_grad();
    ddp.run(one_lane_each(*world, number), [&](size_t) {
      seen();
      return net->loss(context.rank);
    });
  };
  step(0);
  forward_outside(net, context.rank);
  EXPECT_FALSE(same_on_all_ranks(net->norm->running_mean, *world));
  ddp.sync_buffers();
  EXPECT_TRUE(same_on_all_ranks(net->norm->running_mean, *world));

  step(1);
  forward_outside(net, context.rank);
  const Tensor own = net->norm->running_mean.clone();
  net->eval();
  Tensor start;
  step(2, [&] { start = net->norm->running_mean.clone(); });
  EXPECT_TRUE(same_on_all_ranks(start, *world)) << "a step of layers that read their buffers";
  if (context.rank == 0) EXPECT_TRUE(at::equal(start, own));
}
TEST(Buffers, ThoseThatAForwardOutsideHasChangedAreRank0sAgain) { expect_ranks_pass("changed_outside", 2); }

// The generator's pass by hand through a discriminator that is frozen for it.
RANK_PROGRAM(frozen_for_a_pass) {
  const auto world = join_world(context);
  auto generator = linear(2);
  torch::nn::BatchNorm1d critic(3);
  const DistributedDataParallel first(generator.ptr(), world), second(critic.ptr(), world);
  for (auto& parameter : critic->parameters()) parameter.requires_grad_(false);
  critic->forward(generator->forward(input(context.rank))).pow(3).mean().backward();
  EXPECT_TRUE(same_on_all_ranks(generator->weight.grad(), *world));
  EXPECT_TRUE(same_on_all_ranks(critic->running_mean, *world));
  EXPECT_GT(critic->running_mean.abs().sum().item<double>(), 0);
}
TEST(Buffers, ThoseOfAFrozenNetworkFollowAPassByHand) { expect_ranks_pass("frozen_for_a_pass", 2); }

RANK_PROGRAM(failing_step) {
  const auto world = join_world(context);
  Normed net;
  DistributedDataParallel ddp(net.ptr(), world);
  EXPECT_THAT(failure([&] {
                ddp.run(one_lane_each(*world), [&](size_t) {
                  net->loss(context.rank);
                  return net->layer->forward(input(context.rank)).mean();
                });
              }),
              HasSubstr("no gradient for norm.weight"));
  EXPECT_TRUE(at::equal(net->norm->running_mean, at::zeros({3}))) << "as before the step";
}
TEST(Buffers, AStepThatFailsAtItsEndLeavesThemAsTheyWere) {
  for (const int size : {1, 2}) expect_ranks_pass("failing_step", size);
}

// Two networks over one BatchNorm whose weights are frozen, of which one is stepped. Argument: the file to write to.
RANK_PROGRAM(shared_by_two) {
  const auto world = join_world(context);
  torch::nn::BatchNorm1d norm(4);
  for (auto& parameter : norm->parameters()) parameter.requires_grad_(false);
  struct Head : torch::nn::Module {
    torch::nn::BatchNorm1d norm{nullptr};
    torch::nn::Linear layer{nullptr};
    Head(const torch::nn::BatchNorm1d& shared, uint64_t seed) {
      norm = register_module("norm", shared);
      layer = register_module("layer", linear(seed));
    }
  };
  const auto one = std::make_shared<Head>(norm, 1), two = std::make_shared<Head>(norm, 2);
  DistributedDataParallel first(one, world), second(two, world);
  const auto own = world->own_lanes(4);
  for (int64_t number = 0; number < 3; ++number) {
    const auto& stepped = number == 1 ? two : one;
    StepPlan step{.number = number, .samples = 8, .lanes = {}};
    for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, 2});
    stepped->zero_grad();
    (number == 1 ? second : first).run(step, [&](size_t i) {
      const int lane = step.lanes[i].index;
      return stepped->layer->forward(norm->forward(input(lane) * (1 + lane))).square().mean();
    });
  }
  EXPECT_TRUE(same_on_all_ranks(norm->running_mean, *world));
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 3);
  if (context.rank > 0) return;
  std::ofstream file(context.argument);
  for (int i = 0; i < 4; ++i) file << std::hexfloat << norm->running_mean[i].item<double>() << ' ';
}
TEST(Buffers, ThoseThatTwoNetworksShareFollowTheLanes) {
  const std::string reference = written_by("shared_by_two", 1);
  for (const int size : {2, 4}) EXPECT_EQ(written_by("shared_by_two", size), reference) << size << " ranks";
}

struct ScaledImpl : torch::nn::Module {
  Tensor weight = register_parameter("weight", at::ones({1}));
  Tensor scale = register_buffer("scale", at::ones({1}));
};
TORCH_MODULE(Scaled);

// Two passes over one forward, whose graph has saved a buffer that differs between ranks.
RANK_PROGRAM(saved_buffer) {
  const auto world = join_world(context);
  Scaled net;
  DistributedDataParallel ddp(net.ptr(), world);
  const bool differs = context.argument == "differs";
  {
    const at::NoGradGuard no_grad;
    net->scale.fill_(differs ? 1 + context.rank : 3);
  }
  const Tensor first = (net->weight * net->scale).sum(), second = (net->weight * 10 * net->scale).sum();
  ddp.backward(first);
  const std::string text = failure([&] { ddp.backward(second); });
  if (differs) {
    EXPECT_THAT(text, HasSubstr("modified by an inplace operation"));
  } else {
    EXPECT_EQ(text, "");
    EXPECT_EQ(net->weight.grad()[0].item<float>(), 33);
  }
}
TEST(Buffers, APassAfterAnotherDoesNotUseRank0sInPlaceOfItsForwards) {
  for (const char* which : {"differs", "alike"}) expect_ranks_pass("saved_buffer", 2, which);
}

// A BatchNorm's statistics differ between ranks before every sync, but no pass reads them.
RANK_PROGRAM(two_losses_of_a_forward) {
  const auto world = join_world(context);
  Normed net;
  DistributedDataParallel ddp(net.ptr(), world);
  for (int step = 0; step < 2; ++step) {
    net->zero_grad();
    {
      const at::NoGradGuard no_grad;
      net->norm->running_mean.copy_(at::ones({3}));  // as a load on all ranks does
    }
    const Tensor y = net->norm->forward(net->layer->forward(input(context.rank)));
    y.pow(3).mean().backward(/*gradient=*/{}, /*retain_graph=*/true);
    y.pow(4).mean().backward();
  }
  EXPECT_TRUE(same_on_all_ranks(net->layer->weight.grad(), *world));
}
TEST(Buffers, StatisticsMayDifferBetweenTwoPassesOfAForward) { expect_ranks_pass("two_losses_of_a_forward", 2); }

}  // namespace
}  // namespace lockstep::parallel
