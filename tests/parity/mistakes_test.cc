// Loops that can't be right, on real ranks: each is one clear error on all of them.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include <optional>

#include "lockstep/parallel/power_sgd.h"
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
  DistributedDataParallel ddp(net.ptr(), world, {.static_graph = context.argument == "plain, static graph"});
  DistributedDataParallel second(other.ptr(), world);
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
    if (context.argument.starts_with("other")) {
      std::optional<DistributedDataParallel::NoSync> off;
      if (context.argument == "other, no_sync") off.emplace(second);
      loss_of(other, 0).backward();
    }
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
                            "plain, two lanes", "plain, static graph", "other", "other, no_sync"}) {
    SCOPED_TRACE(inner);
    expect_ranks_pass("nested", 2, inner);
  }
}

// Lane 0's backward waits for lane 1 at the layer, in whose function the mistake is.
RANK_PROGRAM(nested_by_turns) {
  const auto world = join_over(context);
  auto net = linear(1), other = linear(2);
  torch::nn::Sequential first(net, torch::nn::BatchNorm1d(3));
  convert_sync_batchnorm(*first, world->communicator());
  DistributedDataParallel ddp(first.ptr(), world);
  const DistributedDataParallel second(other.ptr(), world);
  StepPlan step{.number = 0, .samples = context.size * 2, .lanes = {{2 * context.rank, 1}, {2 * context.rank + 1, 1}}};
  const auto run = [&](bool nested) {
    return failure([&] {
      ddp.run(step, [&](size_t lane) {
        const Tensor out = first->forward(input(context.rank) * (1.0 + static_cast<double>(lane)));
        if (nested && lane == 1) loss_of(other, 0).backward();
        return other->forward(at::cat({out, out.narrow(1, 0, 1)}, 1)).square().mean();
      });
    });
  };
  EXPECT_EQ(run(false), "") << "the step's own backward may reach other networks";
  EXPECT_THAT(run(true), HasSubstr("network 1, which is not stepped, within the function of a step"));
}
TEST(Mistakes, APassOfAnotherNetworkWithinAStepIsRefusedInEveryLane) {
  for (const int size : {1, 2}) expect_ranks_pass("nested_by_turns", size);
  expect_ranks_pass("nested_by_turns", 2, network());
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

// Its parts were converted one by one.
RANK_PROGRAM(wrapped_in_vain) {
  const auto world = join_world(context);
  struct Normed : torch::nn::Module {
    torch::nn::BatchNorm1d one{nullptr}, two{nullptr};
    torch::nn::Linear layer{nullptr};
    Normed() {
      one = register_module("one", torch::nn::BatchNorm1d(4));
      two = register_module("two", torch::nn::BatchNorm1d(4));
      layer = register_module("layer", linear(1));
    }
  };
  const auto net = std::make_shared<Normed>();
  auto alone = linear(1);
  const DistributedDataParallel first(net, world, {.find_unused_parameters = true});
  convert_sync_batchnorm(*net->one, world->communicator());
  convert_sync_batchnorm(*net->two, world->communicator());
  EXPECT_THAT(failure([&] { DistributedDataParallel(net, world); }), HasSubstr("convert the whole module at once"));
  loss_of(net->layer, context.rank).backward();
  mean_over_ranks(alone, context.size).backward();
  expect_gradient(net->layer, alone);
}
TEST(Mistakes, AWrapperThatIsRefusedLeavesTheOneBeforeAsItWas) { expect_ranks_pass("wrapped_in_vain", 2); }

RANK_PROGRAM(one_hook_for_two) {
  const auto world = join_world(context);
  auto net = linear(1), other = linear(2);
  const auto hook = power_sgd_hook({});
  const DdpOptions options{.comm_hook = hook};
  const DistributedDataParallel first(net.ptr(), world, options);
  EXPECT_THAT(failure([&] { DistributedDataParallel(other.ptr(), world, options); }),
              HasSubstr("serves another network, whose errors it keeps; make a hook for each"));
  const DistributedDataParallel anew(net.ptr(), world, options);
  loss_of(net, context.rank).backward();
  EXPECT_TRUE(same_on_all_ranks(net->weight.grad(), *world));
}
TEST(Mistakes, AHookWithAStateServesOneNetwork) { expect_ranks_pass("one_hook_for_two", 2); }

struct TunedImpl : torch::nn::Module {
  torch::nn::Linear body{nullptr}, head{nullptr};
  TunedImpl() {
    body = register_module("body", linear(1));
    at::manual_seed(2);
    head = register_module("head", torch::nn::Linear(3, 2));
    freeze(*head, true);
  }
  static void freeze(torch::nn::Module& part, bool frozen) {
    for (auto& parameter : part.parameters()) parameter.requires_grad_(!frozen);
  }
  Tensor loss(int rank) { return head->forward(body->forward(input(rank))).square().mean(); }
};
TORCH_MODULE(Tuned);

// Fine-tuning: the body is frozen and the head unfrozen, so that no parameter that is folded gets a gradient.
RANK_PROGRAM(head_unfrozen) {
  const auto world = join_world(context);
  Tuned net;
  DistributedDataParallel ddp(net.ptr(), world);
  TunedImpl::freeze(*net->body, true);
  TunedImpl::freeze(*net->head, false);
  // Only rank 1 makes the mistake; rank 0 hears of it.
  const std::string text = failure([&] {
    if (context.rank == 1) net->loss(1).backward();
    world->communicator().barrier();
  });
  EXPECT_THAT(text, HasSubstr("head."));
  EXPECT_THAT(text, HasSubstr("requires a gradient now and did not when the module was wrapped"));
}
TEST(Mistakes, AParameterUnfrozenLaterIsNamedOnAllRanks) { expect_ranks_pass("head_unfrozen", 2); }

// The argument says how a step is made of a module that has got a new layer.
RANK_PROGRAM(layer_added) {
  const auto world = join_world(context);
  auto net = linear(1);
  DistributedDataParallel ddp(net.ptr(), world);
  const auto added = net->register_parameter("added", at::ones({3}));
  const auto loss = [&](size_t) { return loss_of(net, context.rank) + added.square().sum(); };
  EXPECT_THAT(failure([&] {
                if (context.argument == "run") ddp.run(one_lane_each(*world), loss);
                if (context.argument == "backward") ddp.backward(loss(0));
                if (context.argument == "plain") loss(0).backward();
              }),
              HasSubstr("added requires a gradient now and did not when the module was wrapped"));
}
TEST(Mistakes, AParameterAddedLaterIsNamed) {
  for (const char* how : {"run", "backward", "plain"}) expect_ranks_pass("layer_added", 2, how);
}

RANK_PROGRAM(unfrozen_and_wrapped_anew) {
  const auto world = join_world(context);
  auto net = linear(1), alone = linear(1);
  net->bias.requires_grad_(false);
  auto ddp = std::make_unique<DistributedDataParallel>(net.ptr(), world);
  loss_of(net, context.rank).backward();
  net->bias.requires_grad_(true);
  ddp = std::make_unique<DistributedDataParallel>(net.ptr(), world);
  net->zero_grad();
  ddp->run(one_lane_each(*world), [&](size_t) { return loss_of(net, context.rank); });
  mean_over_ranks(alone, context.size).backward();
  expect_gradient(net, alone);
}
TEST(Mistakes, AModuleWrappedAnewFoldsWhatIsUnfrozen) {
  for (const int size : {1, 2}) expect_ranks_pass("unfrozen_and_wrapped_anew", size);
}

}  // namespace
}  // namespace lockstep::parallel
