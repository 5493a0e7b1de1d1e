// Mistakes in loops of one's own, on real ranks: each is one clear error at once.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <optional>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/env.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/sharded_optimizer.h"
#include "lockstep/parallel/threads.h"
#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::Ranks;

Tensor loss_of(torch::nn::Linear& net) { return net->forward(at::ones({2, 4})).square().mean(); }

RANK_PROGRAM(lost_graph) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  DistributedDataParallel ddp(net.ptr(), world);
  ddp.run(plan_of_lanes(*world, 5, context.size), [&](size_t) {
    const Tensor loss = loss_of(net);
    return context.rank == 1 ? loss.detach() : loss;
  });
}
TEST(LoopMistakes, ALossWithoutAGraphNamesItsLane) {
  const auto results = Ranks("lost_graph", 2).wait();
  EXPECT_EQ(results[1].exit_code, 2) << results[1].output;
  EXPECT_THAT(results[1].output, HasSubstr("step 5, lane 1: the loss has no graph"));
  EXPECT_EQ(results[0].exit_code, 69) << results[0].output;
}

// A module that is trained and was not wrapped. argument: "", what makes it right, or when it comes.
RANK_PROGRAM(forgotten_head) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Linear net(4, 3), head(3, 1);
  DistributedDataParallel ddp(net.ptr(), world, {.own_parameters = context.argument == "allowed"});
  std::optional<DistributedDataParallel> wrapped;
  if (context.argument == "wrapped") wrapped.emplace(head.ptr(), world);
  if (context.argument == "frozen") head->weight.requires_grad_(false), head->bias.requires_grad_(false);
  torch::optim::SGD sgd(head->parameters(), 0.1);
  const Tensor points = at::ones({2, 4}).requires_grad_();  // as a network of physics has them, the same each time
  for (int64_t number = 0; number < 70; ++number) {
    net->zero_grad();
    head->zero_grad();
    const bool joins = number >= (context.argument == "late" ? 60 : 0);
    const auto loss = [&](size_t) {
      const Tensor input = at::ones({2, 4}).requires_grad_();  // as a gradient penalty has it, another one each time
      const Tensor features = net->forward(input + points);
      return (joins ? head->forward(features) : features).square().mean();
    };
    const StepPlan step = plan_of_lanes(*world, number, 4);
    if (wrapped) {
      DistributedDataParallel::run_together({&ddp, &*wrapped}, step, loss);
    } else {
      ddp.run(step, loss);
    }
    if (context.argument != "unused") sgd.step();  // features that another network has learnt
  }
}
TEST(LoopMistakes, ATrainedModuleThatIsNotWrappedIsNamed) {
  for (const int ranks : {2, 4}) {
    for (const auto& result : Ranks("forgotten_head", ranks).wait()) {
      EXPECT_EQ(result.exit_code, 2) << result.output;
      EXPECT_THAT(result.output, HasSubstr("step 1: the loss reaches a tensor of shape ["));
    }
    for (const auto& result : Ranks("forgotten_head", ranks, "late").wait()) {
      EXPECT_THAT(result.output, HasSubstr("step 65: the loss reaches a tensor of shape ["));
    }
    for (const char* right : {"allowed", "wrapped", "frozen", "unused"})
      expect_ranks_pass("forgotten_head", ranks, right);
  }
  expect_ranks_pass("forgotten_head", 1);
}

// A second loss in some steps, which has a weight of its own that is learnt: two runs of one number.
RANK_PROGRAM(forgotten_weight) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Linear net(4, 3);
  DistributedDataParallel ddp(net.ptr(), world);
  const Tensor weight = at::ones({1}).requires_grad_();
  torch::optim::SGD sgd({weight}, 0.1);
  for (int64_t number = 0; number < 3; ++number) {
    net->zero_grad();
    ddp.run(plan_of_lanes(*world, number, 4), [&](size_t) { return loss_of(net) * weight.sum(); });
    ddp.run(plan_of_lanes(*world, number, 4), [&](size_t) { return loss_of(net); });
    sgd.step();
  }
}
TEST(LoopMistakes, ALearnedWeightOfOneOfTwoLossesIsNamed) {
  for (const auto& result : Ranks("forgotten_weight", 2).wait()) {
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr("step 1: the loss reaches a tensor of shape [1] that is trained"));
  }
  expect_ranks_pass("forgotten_weight", 1);
}

// The same in mixed precision, where its optimizer would take 65536 times its gradient. argument: the dtype.
RANK_PROGRAM(scaled_weight) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Linear net(4, 3);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  const at::ScalarType dtype = context.argument == "fp16" ? at::kHalf : at::kBFloat16;
  amp::MixedPrecision mixed({net.get()}, {sgd}, {.dtype = dtype});
  DistributedDataParallel ddp(net.ptr(), world);
  const Tensor weight = at::ones({1}).requires_grad_();
  torch::optim::SGD own({weight}, 0.1);
  for (int64_t number = 0; number < 3; ++number) {
    const auto result = ddp.run(
        plan_of_lanes(*world, number, 4), [&](size_t) { return loss_of(net).to(at::kFloat) * weight.sum(); }, mixed);
    mixed.step(sgd, result);
    mixed.zero_grad(sgd);
    own.step();
    own.zero_grad();
  }
}
TEST(LoopMistakes, ATrainedTensorWhoseGradientKeepsTheLossScaleIsNamed) {
  for (const auto& result : Ranks("scaled_weight", 1, "fp16").wait()) {
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr("its gradient would keep the loss scale of "));
  }
  expect_ranks_pass("scaled_weight", 1, "bf16");
}

// argument: the plan.
RANK_PROGRAM(odd_plan) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  DistributedDataParallel ddp(net.ptr(), world);
  StepPlan step{.number = 0, .samples = 4, .lanes = {{context.rank, 1}, {context.rank + 2, 1}}};
  if (context.argument == "negative") step.lanes = {{2 * context.rank, 3}, {2 * context.rank + 1, -1}};
  if (context.argument == "reversed") step.lanes = {{2 - 2 * context.rank, 1}, {3 - 2 * context.rank, 1}};
  if (context.argument == "descending") step.lanes = {{2 * context.rank + 1, 1}, {2 * context.rank, 1}};
  if (context.argument == "uneven") {
    step.lanes = {{3 * context.rank, 1}};
    if (context.rank == 0) step.lanes.push_back({1, 1}), step.lanes.push_back({2, 1});
  }
  if (context.argument == "three") {
    step = {.number = 0, .samples = 6, .lanes = {}};
    for (int i = 0; i < 3; ++i) step.lanes.push_back({3 * context.rank + i, 1});
  }
  if (context.argument == "empty") step = {.number = 0, .samples = 0, .lanes = {{context.rank, 0}}};
  ddp.run(step, [&](size_t) { return loss_of(net); });
}
TEST(LoopMistakes, PlansThatCanNotBeRightAreRefused) {
  for (const auto& [argument, text] :
       {std::pair{"gaps", "a rank's lanes follow each other"},
        {"negative", "has -1 samples"},
        {"reversed", "a rank's lanes follow each other, those of rank 0 first"},
        {"descending", "a rank's lanes follow each other"},
        {"uneven", "a rank's lanes follow each other"},
        {"three", "a rank's lanes follow each other, those of rank 0 first, a power of two"},
        {"empty", "a global batch of 0 samples"}}) {
    for (const auto& result : Ranks("odd_plan", 2, argument).wait()) {
      EXPECT_EQ(result.exit_code, 2) << result.output;
      EXPECT_THAT(result.output, HasSubstr(text));
    }
  }
}

// Losses with scales of their own, which part after some steps, or at an overflow.
RANK_PROGRAM(two_losses) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  amp::MixedPrecision mixed({net.get()}, {sgd}, {.dtype = at::kHalf, .num_losses = 2});
  DistributedDataParallel ddp(net.ptr(), world);
  const auto loss = [&](size_t) { return loss_of(net).to(at::kFloat); };
  for (int64_t number = 0; number < 3; ++number) {  // one after the other is right
    for (const int loss_id : {0, 1}) {
      const auto result = ddp.run(plan_of_lanes(*world, number, 2), loss, mixed, loss_id);
      mixed.step(sgd, result, {}, loss_id);
      mixed.zero_grad(sgd);
    }
  }
  ddp.run(plan_of_lanes(*world, 3, 2), loss, mixed, 0);
  ddp.run(plan_of_lanes(*world, 3, 2), loss, mixed, 1);
}
// A result that is given as another loss's, whose scale it would change. argument: "step" or "unscale".
RANK_PROGRAM(another_losses_result) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  amp::MixedPrecision mixed({net.get()}, {sgd}, {.dtype = at::kHalf, .num_losses = 2});
  DistributedDataParallel ddp(net.ptr(), world);
  const auto result = ddp.run(
      plan_of_lanes(*world, 0, 2), [&](size_t) { return loss_of(net).to(at::kFloat); }, mixed, /*loss_id=*/1);
  if (context.argument == "unscale") mixed.unscale(sgd, result);
  mixed.step(sgd, result);
}
TEST(LoopMistakes, AResultIsSteppedAsThatOfItsLoss) {
  for (const char* call : {"step", "unscale"}) {
    for (const auto& result : Ranks("another_losses_result", 1, call).wait()) {
      EXPECT_EQ(result.exit_code, 2) << result.output;
      EXPECT_THAT(result.output, HasSubstr("a result of loss 1 is given as one of loss 0"));
    }
  }
}

// Gradients that an update has used are dropped by the next run: such loops need no zero_grad().
RANK_PROGRAM(two_losses_without_zero_grad) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  const auto sgd = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.1}});
  amp::MixedPrecision mixed({net.get()}, {*sgd}, {.dtype = at::kHalf, .num_losses = 2});
  DistributedDataParallel ddp(net.ptr(), world);
  for (int64_t number = 0; number < 6; ++number) {
    const int loss_id = static_cast<int>(number % 2);
    const auto result = ddp.run(
        plan_of_lanes(*world, number, 2), [&](size_t) { return loss_of(net).to(at::kFloat); }, mixed, loss_id);
    EXPECT_FALSE(mixed.step(*sgd, result, {}, loss_id).skipped);
  }
}
TEST(LoopMistakes, LossesThatTakeTurnsNeedNoZeroGrad) {
  for (const int ranks : {1, 2}) expect_ranks_pass("two_losses_without_zero_grad", ranks);
}

TEST(LoopMistakes, LossesWithScalesOfTheirOwnDoNotShareAnUpdate) {
  for (const int ranks : {1, 2}) {
    for (const auto& result : Ranks("two_losses", ranks).wait()) {
      EXPECT_EQ(result.exit_code, 2) << result.output;
      EXPECT_THAT(result.output,
                  HasSubstr("step 3: .grad holds gradients of loss 0, and those of loss 1 can't be added"));
    }
  }
}

// Weights that get other memory, as torch::load gives them. argument: what comes next.
RANK_PROGRAM(moved_weights) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  DistributedDataParallel ddp(net.ptr(), world);
  ShardedOptimizer optimizer(optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.1}}), world->communicator());
  const auto step = [&](int64_t number) {
    net->zero_grad();
    ddp.run(plan_of_lanes(*world, number, 2), [&](size_t) { return loss_of(net); });
    optimizer.update({});
  };
  step(0);
  optimizer.keep_average(0.9);
  for (Tensor& weight : net->parameters()) weight.set_data(weight.detach().clone());
  if (context.argument == "exchange") optimizer.exchange_averages();
  if (context.argument == "update") step(1);
}
TEST(LoopMistakes, WeightsThatAShardedOptimizerWouldNotReachAreNamed) {
  for (const int ranks : {1, 2}) {
    for (const char* next : {"exchange", "update"}) {
      for (const auto& result : Ranks("moved_weights", ranks, next).wait()) {
        EXPECT_EQ(result.exit_code, 2) << result.output;
        EXPECT_THAT(result.output, HasSubstr("has other memory than when the optimizer was made"));
      }
    }
  }
}

RANK_PROGRAM(one_sample) {
  const auto world = join_world(context);
  torch::nn::BatchNorm1d net(4);
  DistributedDataParallel ddp(net.ptr(), world);
  const bool last = context.rank == context.size - 1;
  parallel::StepPlan step{.number = 7, .samples = 2 * context.size - 1, .lanes = {{context.rank, last ? 1 : 2}}};
  ddp.run(step, [&](size_t) { return net->forward(at::ones({last ? 1 : 2, 4})).sum(); });
}
TEST(LoopMistakes, ALaneOfOneSampleIsNamedWhereBatchNormCanNotTakeIt) {
  const auto results = Ranks("one_sample", 2).wait();
  EXPECT_NE(results[1].exit_code, 0);
  EXPECT_THAT(results[1].output, HasSubstr("step 7, lane 1, whose batch has one sample; leave an epoch's last"));
  EXPECT_EQ(results[0].exit_code, 69) << results[0].output;
}

RANK_PROGRAM(loaded_on_one) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  DistributedDataParallel ddp(net.ptr(), world);
  const auto step = [&](int64_t number) {
    net->zero_grad();
    ddp.run(plan_of_lanes(*world, number, context.size), [&](size_t) { return loss_of(net); });
  };
  step(0);
  if (context.rank == 0) net->weight.data().mul_(0.5);
  step(1);
}
TEST(LoopMistakes, WeightsThatOneRankHasChangedAreFoundInTheNextStep) {
  expect_ranks_pass("loaded_on_one", 1);
  bool found = false;
  for (const auto& result : Ranks("loaded_on_one", 2).wait()) {
    EXPECT_TRUE(result.exit_code == 2 || result.exit_code == 69) << result.output;
    found = found || result.output.find("its weights and those of other ranks differ") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

// Networks that begin with weights of their own are nobody's mistake.
RANK_PROGRAM(weights_of_their_own) {
  const auto world = join_world(context);
  at::manual_seed(static_cast<uint64_t>(context.rank));
  torch::nn::Linear net(4, 3);
  DistributedDataParallel ddp(net.ptr(), world, {.broadcast_state = false});
  ddp.run(plan_of_lanes(*world, 0, context.size), [&](size_t) { return loss_of(net); });
}
TEST(LoopMistakes, WeightsMayDifferThatWereNeverShared) { expect_ranks_pass("weights_of_their_own", 2); }

// What a look at the averages does to the weights is no update.
RANK_PROGRAM(averages_between_runs) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  const auto optimizer = optim::make_optimizer("sgd", net->parameters());
  optimizer->keep_average(0.9);
  DistributedDataParallel ddp(net.ptr(), world);
  const auto run = [&](int64_t step) {
    ddp.run(plan_of_lanes(*world, step, context.size), [&](size_t) { return loss_of(net); });
  };
  run(0);
  optimizer->update({});
  optimizer->zero_grad();
  run(1);
  optimizer->exchange_averages();
  optimizer->exchange_averages();
  EXPECT_THAT(testing_support::refusal([&] { run(1); }),
              HasSubstr("weight was written to between two runs of one step"));
}
TEST(LoopMistakes, WeightsThatAreWrittenToBetweenRunsOfAStepAreRefused) {
  for (const int ranks : {1, 2}) expect_ranks_pass("averages_between_runs", ranks);
}

// As PyTorch users write it: a number that stays 0. Each update has masks of its own, the same on any number of ranks.
RANK_PROGRAM(one_number) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  DistributedDataParallel ddp(net.ptr(), world);
  std::vector<Tensor> drawn;
  for (int update = 0; update < 3; ++update) {
    ddp.run(plan_of_lanes(*world, 0, 4), [&](size_t i) {
      if (i == 0) drawn.push_back(at::rand({8}));
      return loss_of(net);
    });
    optimizer.step();
    optimizer.zero_grad();
  }
  EXPECT_FALSE(at::equal(drawn[0], drawn[1]) || at::equal(drawn[1], drawn[2]) || at::equal(drawn[0], drawn[2]));
}
TEST(LoopMistakes, ANumberThatDoesNotRiseDrawsNewMasks) {
  for (const int ranks : {1, 2}) expect_ranks_pass("one_number", ranks);
}

// Argument: the threads that a step of four lanes leaves.
RANK_PROGRAM(threads_by_lanes) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 3);
  const int at_start = at::get_num_threads();
  if (context.argument == "back") propose_threads(4);
  if (context.argument == "program") at::set_num_threads(7);
  if (context.argument == "back") at::set_num_threads(at_start);
  DistributedDataParallel ddp(net.ptr(), world, {.keep_threads = context.argument == "kept"});
  const int before = at::get_num_threads();
  ddp.run(plan_of_lanes(*world, 0, 4), [&](size_t) { return loss_of(net); });
  const int by_lanes = std::max(1, usable_cores() / 4);
  EXPECT_EQ(at::get_num_threads(), context.argument == "lanes" ? by_lanes : before);
}
TEST(LoopMistakes, ThreadsFollowTheLanesUnlessSomebodyHasChosenThem) {
  using Environment = std::map<std::string, std::string>;
  const auto run = [](int ranks, const std::string& expected, const Environment& environment) {
    for (const auto& result : Ranks("threads_by_lanes", ranks, expected, environment).wait()) {
      EXPECT_EQ(result.exit_code, 0) << expected << result.output;
    }
  };
  for (const int ranks : {1, 2, 4}) {
    run(ranks, "lanes", {{"OMP_NUM_THREADS", "3"}, {"MKL_NUM_THREADS", "3"}, {"LOCKSTEP_THREADS", "auto"}});
  }
  run(2, "environment", {{"OMP_NUM_THREADS", "3"}, {"MKL_NUM_THREADS", "3"}});
  run(2, "program", {{"OMP_NUM_THREADS", "3"}, {"MKL_NUM_THREADS", "3"}, {"LOCKSTEP_THREADS", "auto"}});
  run(2, "back", {{"OMP_NUM_THREADS", "3"}, {"MKL_NUM_THREADS", "3"}, {"LOCKSTEP_THREADS", "auto"}});
  run(1, "kept", {{"OMP_NUM_THREADS", "3"}, {"MKL_NUM_THREADS", "3"}, {"LOCKSTEP_THREADS", "auto"}});
}

}  // namespace
}  // namespace lockstep::parallel
