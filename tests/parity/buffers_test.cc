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

}  // namespace
}  // namespace lockstep::parallel
