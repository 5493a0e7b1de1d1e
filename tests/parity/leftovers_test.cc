// Gradients that are in .grad when a step or a pass begins.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/testing/refusal.h"
#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

// Backward adds to a gradient in place, which leaves it the tensor that a step has installed.
RANK_PROGRAM(no_sync_after_a_step) {
  const auto world = join_over(context);
  const int r = context.rank, w = context.size;
  for (const bool average : {true, false}) {
    auto net = linear(1), alone = linear(1);
    DistributedDataParallel ddp(net.ptr(), world, {.gradient_average = average});
    const auto step = [&](int64_t number, double factor) {
      ddp.run(one_lane_each(*world, number), [&](size_t) { return loss_of(net, r, factor); });
    };
    const auto own = [&](double factor) {
      const auto scope = ddp.no_sync();
      loss_of(net, r, factor).backward();
    };
    // Without the average, the gradient that was folded is one of those that are summed.
    const double folded = average ? 1 : w;
    step(0, 1);
    own(3);
    step(0, 5);
    mean_over_ranks(alone, w, 5 + 3 * folded + folded).backward();
    expect_gradient(net, alone);

    for (auto& parameter : net->parameters()) {
      const at::NoGradGuard no_grad;
      parameter.add_(0);  // as an update leaves a new version
      parameter.grad().zero_();
    }
    own(3);
    step(1, 5);
    alone->zero_grad();
    mean_over_ranks(alone, w, 5 + 3 * folded).backward();
    expect_gradient(net, alone);
    EXPECT_TRUE(same_on_all_ranks(net->weight.grad(), *world));
  }
}
TEST(Leftovers, APassWithoutSyncAddsToTheGradientOfAStep) {
  expect_ranks_pass("no_sync_after_a_step", 1);
  expect_ranks_pass("no_sync_after_a_step", 2);
  expect_ranks_pass("no_sync_after_a_step", 2, network());
}

// A program's own broadcast writes to the parameter on all ranks, the root included. It may have been an update, and so
// nobody knows whether the gradients are to add up: all ranks say so. After zero_grad() it is of no account.
RANK_PROGRAM(broadcast_between_losses) {
  const auto world = join_over(context);
  auto net = linear(1), alone = linear(1);
  DistributedDataParallel ddp(net.ptr(), world);
  const auto loss = [&](double factor) {
    ddp.run(one_lane_each(*world, 3), [&](size_t) { return loss_of(net, context.rank, factor); });
  };
  loss(1);
  world->communicator().broadcast(net->weight, 0);
  net->zero_grad();
  loss(5);
  EXPECT_TRUE(same_on_all_ranks(net->weight.grad(), *world));
  EXPECT_TRUE(same_on_all_ranks(net->bias.grad(), *world));
  mean_over_ranks(alone, context.size, 5).backward();
  EXPECT_TRUE(at::allclose(net->weight.grad(), alone->weight.grad(), 1e-5, 1e-6));
  world->communicator().broadcast(net->weight, 0);
  EXPECT_THAT(testing_support::refusal([&] { loss(5); }),
              HasSubstr("step 3: weight was written to between two runs of one step"));
}
TEST(Leftovers, ABroadcastBetweenTwoLossesCountsAlikeOnAllRanks) {
  expect_ranks_pass("broadcast_between_losses", 2);
  expect_ranks_pass("broadcast_between_losses", 2, network());
}

RANK_PROGRAM(leftovers_of_two_lanes) {
  const auto world = join_world(context);
  const int r = context.rank, w = context.size;
  auto net = linear(1), alone = linear(1);
  DistributedDataParallel ddp(net.ptr(), world);
  {
    const auto scope = ddp.no_sync();
    loss_of(net, r, 3).backward();
  }
  ddp.run({.samples = 2 * w, .lanes = {{2 * r, 1}, {2 * r + 1, 1}}}, [&](size_t) { return loss_of(net, r, 5); });
  mean_over_ranks(alone, w, 8).backward();
  expect_gradient(net, alone);
}
TEST(Leftovers, CountOnceHoweverManyLanesARankHas) {
  for (const int size : {1, 2}) expect_ranks_pass("leftovers_of_two_lanes", size);
}

RANK_PROGRAM(leftovers_with_options) {
  const auto world = join_world(context);
  const int r = context.rank, w = context.size;
  for (const DdpOptions& options :
       {DdpOptions{.gradient_predivide_factor = 3.0}, DdpOptions{.allreduce_always_fp32 = true},
        DdpOptions{.buckets = {.wire = at::kBFloat16}}, DdpOptions{.gradient_average = false}}) {
    auto net = linear(1), alone = linear(1);
    DistributedDataParallel ddp(net.ptr(), world, options);
    {
      const auto scope = ddp.no_sync();
      loss_of(net, r).backward();
    }
    ddp.run(one_lane_each(*world), [&](size_t) { return loss_of(net, r, 5); });
    mean_over_ranks(alone, w, 5 + (options.gradient_average ? 1 : w)).backward();
    expect_gradient(net, alone, options.buckets.wire ? 2e-2 : 1e-5);
  }
}
TEST(Leftovers, EveryOptionTreatsThemAsGradients) {
  for (const int size : {1, 2, 4}) expect_ranks_pass("leftovers_with_options", size);
}

// A pass by hand that does not reach `a`, where some ranks have a gradient of it from before.
void pass_beside_a_leftover(const std::shared_ptr<World>& world, const DdpOptions& options, bool announced,
                            int ranks_with_one) {
  auto a = linear(1), b = linear(2), a_alone = linear(1), b_alone = linear(2);
  torch::nn::Sequential net(a, b);
  DistributedDataParallel ddp(net.ptr(), world, options);
  const auto pass = [&] {
    const Tensor loss = loss_of(b, world->rank());
    if (announced) {
      ddp.backward(loss);
    } else {
      loss.backward();
    }
  };
  mean_over_ranks(b_alone, world->size()).backward();
  for (int rank = 0; rank < ranks_with_one; ++rank) (loss_of(a_alone, rank) / world->size()).backward();
  for (const bool leftover : {false, true, false}) {
    net->zero_grad();
    if (leftover && world->rank() < ranks_with_one) {
      const auto scope = ddp.no_sync();
      loss_of(a, world->rank()).backward();
    }
    pass();
    expect_gradient(b, b_alone);
    ASSERT_EQ(a->weight.grad().defined(), leftover) << "on rank " << world->rank();
    if (leftover) expect_gradient(a, a_alone);
  }
}

RANK_PROGRAM(leftovers_of_an_unreached_parameter) {
  const auto world = join_over(context);
  for (const DdpOptions& options : {DdpOptions{.find_unused_parameters = true}, DdpOptions{.static_graph = true}}) {
    for (const bool announced : {true, false}) {
      for (int ranks = 1; ranks <= context.size; ++ranks) pass_beside_a_leftover(world, options, announced, ranks);
    }
  }
}
TEST(Leftovers, OfAParameterThatALossDoesNotReachAreFolded) {
  for (const int size : {1, 2}) expect_ranks_pass("leftovers_of_an_unreached_parameter", size);
  expect_ranks_pass("leftovers_of_an_unreached_parameter", 2, network());
}

// Autocast keeps the cast of a weight, so that a step and a pass by hand share it, with its hooks.
std::vector<Tensor> step_then_pass(const std::shared_ptr<World>& world, bool shared_casts, bool no_sync) {
  auto net = linear(1);
  DistributedDataParallel ddp(net.ptr(), world);
  std::optional<amp::CastCacheScope> casts;
  if (shared_casts) casts.emplace();
  const auto loss = [&](double factor) {
    const amp::AutocastScope autocast({.level = amp::OptLevel::kO1});
    return loss_of(net, world->rank(), factor).to(at::kFloat);
  };
  ddp.run(one_lane_each(*world), [&](size_t) { return loss(1); });
  if (no_sync) {
    {
      const auto scope = ddp.no_sync();
      loss(2).backward();
    }
    ddp.run(one_lane_each(*world), [&](size_t) { return loss(4); });
  } else {
    loss(2).backward();
  }
  return {net->weight.grad(), net->bias.grad()};
}

RANK_PROGRAM(shared_casts) {
  const auto world = join_world(context);
  for (const bool no_sync : {false, true}) {
    const auto shared = step_then_pass(world, true, no_sync), apart = step_then_pass(world, false, no_sync);
    for (size_t i = 0; i < shared.size(); ++i) EXPECT_TRUE(at::equal(shared[i], apart[i])) << no_sync << ' ' << i;
    auto alone = linear(1);
    mean_over_ranks(alone, context.size, no_sync ? 7 : 3).backward();
    EXPECT_TRUE(at::allclose(shared[0], alone->weight.grad(), 2e-2, 2e-2));
  }
}
TEST(Leftovers, AStepAndAPassByHandMayShareTheirCasts) {
  for (const int size : {1, 2}) expect_ranks_pass("shared_casts", size);
}

RANK_PROGRAM(unlike_leftovers) {
  const auto world = join_world(context);
  auto net = linear(1);
  DistributedDataParallel ddp(net.ptr(), world);
  const bool one_each = context.argument == "one each";
  if (context.rank == 1 || one_each) {
    at::Tensor& parameter = context.rank == 1 ? net->weight : net->bias;
    parameter.mutable_grad() = at::ones_like(parameter);
  }
  const std::string text =
      failure([&] { ddp.run(one_lane_each(*world), [&](size_t) { return loss_of(net, context.rank); }); });
  EXPECT_THAT(text, HasSubstr("gradients that were not folded"));
  if (context.rank == 1) EXPECT_THAT(text, HasSubstr("weight"));
}
TEST(Leftovers, ThoseOfSomeRanksAreRefused) {
  expect_ranks_pass("unlike_leftovers", 2, "on one rank");
  expect_ranks_pass("unlike_leftovers", 2, "one each");
}

RANK_PROGRAM(outside_the_optimizer) {
  const auto world = join_world(context);
  auto net = linear(1);
  DistributedDataParallel ddp(net.ptr(), world);
  const auto step = [&](int64_t number) {
    ddp.run(one_lane_each(*world, number), [&](size_t) { return loss_of(net, context.rank); });
  };
  step(0);
  net->weight.mutable_grad() = Tensor();  // as the zero_grad() of an optimizer that has the weight alone
  EXPECT_THAT(failure([&] { step(1); }),
              HasSubstr("bias still holds the gradient of step 0; call the module's zero_grad() after every update"));
}
TEST(Leftovers, OfAParameterThatNoOptimizerHasAreNamed) { expect_ranks_pass("outside_the_optimizer", 2); }

// Fine-tuning that unfreezes: the update of the first wrapper's gradients may be over, and nobody knows.
RANK_PROGRAM(left_by_an_earlier_wrapper) {
  const auto world = join_over(context);
  auto net = linear(1);
  const auto wrap_and_step = [&](int64_t number) {
    DistributedDataParallel ddp(net.ptr(), world);
    ddp.run(one_lane_each(*world, number), [&](size_t) { return loss_of(net, context.rank); });
  };
  wrap_and_step(0);
  net->zero_grad();
  wrap_and_step(1);
  EXPECT_THAT(
      failure([&] { wrap_and_step(2); }),
      HasSubstr("still holds the gradient of a time before the network was wrapped; call the module's zero_grad()"));
}
TEST(Leftovers, OfAnEarlierWrapperAreNamed) { expect_ranks_pass("left_by_an_earlier_wrapper", 2); }

}  // namespace
}  // namespace lockstep::parallel
