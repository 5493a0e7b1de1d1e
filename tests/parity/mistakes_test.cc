// Loops that can't be right, on real ranks: each is one clear error on all of them.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

// Another step, or pass, within the function that run() calls. The argument says which.
RANK_PROGRAM(nested) {
  const auto world = join_world(context);
  auto net = linear(1), other = linear(2);
  DistributedDataParallel ddp(net.ptr(), world), second(other.ptr(), world);
  const int lanes = context.argument == "plain, two lanes" ? 2 : 1;
  StepPlan step{.number = 0, .samples = context.size * lanes, .lanes = {}};
  for (int lane = 0; lane < lanes; ++lane) step.lanes.push_back({context.rank * lanes + lane, 1});
  const auto inner = [&] {
    const auto loss = [&](size_t) { return loss_of(net, 0); };
    const auto loss_of_other = [&](size_t) { return loss_of(other, 0); };
    if (context.argument == "run") ddp.run(one_lane_each(*world, 1), loss);
    if (context.argument == "run of another") second.run(one_lane_each(*world, 1), loss_of_other);
    if (context.argument == "run_together") {
      DistributedDataParallel::run_together({&second}, one_lane_each(*world, 1), loss_of_other);
    }
    if (context.argument == "backward") ddp.backward(loss_of(net, 0));
    if (context.argument == "backward of another") second.backward(loss_of(other, 0));
    if (context.argument == "join") second.join([&] { loss_of(other, 0).backward(); });
    if (context.argument.starts_with("plain")) loss_of(net, 0).backward();
  };
  EXPECT_THAT(failure([&] {
                ddp.run(step, [&](size_t) {
                  inner();
                  return loss_of(net, context.rank);
                });
              }),
              HasSubstr("within the function of a step; return the sum of all losses from it"));
}
TEST(Mistakes, AStepOrPassWithinAStepIsRefused) {
  for (const char* inner : {"run", "run of another", "run_together", "backward", "backward of another", "join", "plain",
                            "plain, two lanes"}) {
    SCOPED_TRACE(inner);
    expect_ranks_pass("nested", 2, inner);
  }
}

RANK_PROGRAM(the_same_network_twice) {
  const auto world = join_world(context);
  auto net = linear(1);
  DistributedDataParallel ddp(net.ptr(), world);
  EXPECT_THAT(failure([&] {
                DistributedDataParallel::run_together({&ddp, &ddp}, one_lane_each(*world),
                                                      [&](size_t) { return loss_of(net, context.rank); });
              }),
              HasSubstr("run_together: a network is given twice"));
}
TEST(Mistakes, ANetworkTwiceInAStepIsRefused) { expect_ranks_pass("the_same_network_twice", 2); }

RANK_PROGRAM(shared_parameter) {
  const auto world = join_world(context);
  struct Other : torch::nn::Module {
    torch::nn::Linear head{nullptr}, own{nullptr};
    explicit Other(const torch::nn::Linear& shared) {
      head = register_module("head", shared);
      own = register_module("own", torch::nn::Linear(2, 2));
    }
  };
  auto net = linear(1), alone = linear(1);
  const auto other = std::make_shared<Other>(net);
  const DistributedDataParallel ddp(net.ptr(), world);
  EXPECT_THAT(failure([&] { DistributedDataParallel(other, world); }),
              HasSubstr("head.weight is wrapped already, as weight of another network"));
  loss_of(net, context.rank).backward();
  mean_over_ranks(alone, context.size).backward();
  expect_gradient(net, alone);
}
TEST(Mistakes, AParameterOfTwoWrappersIsRefusedAndTheFirstFoldsOn) { expect_ranks_pass("shared_parameter", 2); }

RANK_PROGRAM(wrapped_anew) {
  const auto world = join_world(context);
  auto net = linear(1), alone = linear(1);
  const DdpOptions options{.find_unused_parameters = context.argument == "unused"};
  DistributedDataParallel first(net.ptr(), world, options), second(net.ptr(), world, options);
  const auto loss = [&](size_t) { return loss_of(net, context.rank); };
  const auto refused = HasSubstr("the module has been wrapped anew since; use that wrapper");
  EXPECT_THAT(failure([&] { first.run(one_lane_each(*world), loss); }), refused);
  EXPECT_THAT(failure([&] { DistributedDataParallel::run_together({&first}, one_lane_each(*world), loss); }), refused);
  EXPECT_THAT(failure([&] { first.backward(loss(0)); }), refused);
  EXPECT_THAT(failure([&] { first.join([&] {}); }), refused);
  second.run(one_lane_each(*world), loss);
  mean_over_ranks(alone, context.size).backward();
  expect_gradient(net, alone);
}
TEST(Mistakes, AWrapperThatWasReplacedIsRefused) {
  expect_ranks_pass("wrapped_anew", 2);
  expect_ranks_pass("wrapped_anew", 2, "unused");
}

}  // namespace
}  // namespace lockstep::parallel
