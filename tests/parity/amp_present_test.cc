// Steps by results whose gradients are no longer what run() has left: the step is that of the present ones, or refused.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <limits>

#include "amp_loops.h"
#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/held_gradient.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using amp::MixedPrecision;
using amp::OptLevel;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::refusal;

constexpr const char* kKinds[] = {"libtorch", "ours", "sharded"};

// A network with its optimizer, in mixed precision.
struct Trained {
  Trained(World& world, std::shared_ptr<World> shared, const std::string& kind, OptLevel level, at::ScalarType dtype,
          uint64_t seed = 1)
      : net(seed),
        optimizer(kind, net->parameters(), world),
        mixed({net.get()}, {optimizer.ref()}, {.opt_level = level, .dtype = dtype}),
        ddp(net.ptr(), std::move(shared)) {}

  StepResult run(int64_t number, double factor) {
    const StepPlan step = plan(ddp.world(), number);
    return ddp.run(
        step, [&](size_t i) { return loss_of(net, step, i, factor); }, mixed);
  }
  Tensor weight() const { return mixed.master_params(optimizer.ref())[0].detach().clone(); }

  Net net;
  AnyOptimizer optimizer;
  MixedPrecision mixed;
  DistributedDataParallel ddp;
};

// Two runs add up in .grad: by whichever of the results the step is, it is the step of the sum. argument: KIND.
RANK_PROGRAM(accumulated) {
  const auto world = join_world(context);
  for (const auto& [level, dtype] :
       {std::pair{OptLevel::kO1, at::kHalf}, {OptLevel::kO2, at::kHalf}, {OptLevel::kO1, at::kBFloat16}}) {
    for (const bool overflows : {false, true}) {
      std::vector<Tensor> weights;
      std::vector<amp::StepReport> reports;
      std::vector<double> scales;
      for (const bool by_first : {true, false}) {
        Trained trained(*world, world, context.argument, level, dtype);
        const auto first = trained.run(0, 1.0 / 64);
        const auto second = trained.run(0, overflows ? HUGE_VAL : 1.0 / 64);
        const Tensor before = trained.weight();
        reports.push_back(trained.mixed.step(trained.optimizer.ref(), by_first ? first : second, {.max_norm = 0.001}));
        EXPECT_THAT(refusal([&] { trained.mixed.step(trained.optimizer.ref(), by_first ? second : first); }),
                    HasSubstr("step()"))
            << "the sum was stepped";
        const bool skips = overflows && dtype == at::kHalf;
        EXPECT_EQ(at::equal(trained.weight(), before), skips);
        if (overflows) EXPECT_FALSE(reports.back().finite);
        weights.push_back(trained.weight());
        scales.push_back(trained.mixed.loss_scale());
        world->communicator().barrier();  // shared weights are rank 0's
      }
      EXPECT_EQ(reports[0].skipped, reports[1].skipped);
      EXPECT_EQ(scales[0], scales[1]);
      if (overflows) continue;
      EXPECT_NEAR(reports[0].gradient_norm, reports[1].gradient_norm, 1e-5 * reports[1].gradient_norm);
      EXPECT_TRUE(at::allclose(weights[0], weights[1], 1e-5, 1e-7)) << (weights[0] - weights[1]).abs().max();
    }
  }
}
TEST(AmpPresent, TheFirstOfTwoResultsStepsTheSum) {
  for (const char* kind : kKinds) {
    for (const int ranks : {1, 2, 4}) expect_ranks_pass("accumulated", ranks, kind);
  }
}

// Without a scale nobody is kept from changing gradients, as PyTorch users do. argument: KIND.
RANK_PROGRAM(changed) {
  const auto world = join_world(context);
  for (const OptLevel level : {OptLevel::kO0, OptLevel::kO1}) {
    Trained one(*world, world, context.argument, level, at::kBFloat16);
    Trained other(*world, world, context.argument, level, at::kBFloat16);
    const auto result = one.run(0, 1);
    const double norm = std::sqrt(result.square_sum);
    for (const Tensor& each : one.net->parameters()) each.grad().mul_(0.125);
    const auto report = one.mixed.step(one.optimizer.ref(), result, {.max_norm = norm / 16});
    EXPECT_NEAR(report.gradient_norm, norm / 8, 1e-4 * norm) << "of the present gradients";
    const auto plain = other.run(0, 1);
    other.mixed.step(other.optimizer.ref(), plain, {.max_norm = norm / 16});
    EXPECT_TRUE(at::allclose(one.weight(), other.weight(), 1e-4, 1e-6)) << "clipped to the same norm";
    one.mixed.zero_grad(one.optimizer.ref());
    const auto next = one.run(1, 1);
    one.net->parameters()[0].grad().fill_(std::numeric_limits<double>::quiet_NaN());
    EXPECT_FALSE(one.mixed.step(one.optimizer.ref(), next).finite);
    world->communicator().barrier();
  }
}
TEST(AmpPresent, ChangedGradientsHaveANormOfTheirOwn) {
  for (const char* kind : kKinds) {
    for (const int ranks : {1, 2, 4}) expect_ranks_pass("changed", ranks, kind);
  }
}

// libtorch's own function writes to .data(), which has no version in common with the gradient. argument: KIND.
RANK_PROGRAM(clipped_by_libtorch) {
  const auto world = join_world(context);
  Trained one(*world, world, context.argument, OptLevel::kO1, at::kBFloat16);
  const auto result = one.run(0, 1);
  const double norm = std::sqrt(result.square_sum);
  torch::nn::utils::clip_grad_norm_(one.net->parameters(), norm / 2);
  const auto report = one.mixed.step(one.optimizer.ref(), result, {.max_norm = norm});
  EXPECT_NEAR(report.gradient_norm, norm / 2, 1e-4 * norm);
}
TEST(AmpPresent, ClipsByLibtorchAreSeen) {
  for (const char* kind : kKinds) {
    for (const int ranks : {1, 2}) expect_ranks_pass("clipped_by_libtorch", ranks, kind);
  }
}

// The second run overflows, and the first one's result is unscaled. argument: KIND.
RANK_PROGRAM(unscaled_after_more) {
  const auto world = join_world(context);
  Trained one(*world, world, context.argument, OptLevel::kO1, at::kHalf);
  const Tensor before = one.weight();
  const auto first = one.run(0, 1.0 / 64);
  one.run(0, HUGE_VAL);
  const auto unscaled = one.mixed.unscale(one.optimizer.ref(), first);
  const auto report = one.mixed.step(one.optimizer.ref(), unscaled);
  EXPECT_TRUE(report.skipped && !report.finite);
  EXPECT_TRUE(at::equal(one.weight(), before));
}
TEST(AmpPresent, UnscalingTakesThePresentVerdict) {
  for (const int ranks : {1, 2}) {
    expect_ranks_pass("unscaled_after_more", ranks, "libtorch");
    expect_ranks_pass("unscaled_after_more", ranks, "ours");
  }
}

// One of two optimizers has been unscaled when the gradients of the other change. argument: "", or "sparse" ones
// change.
RANK_PROGRAM(changed_beside_unscaled) {
  const auto world = join_world(context);
  at::manual_seed(3);
  const bool sparse = context.argument == "sparse";
  torch::nn::Embedding first(torch::nn::EmbeddingOptions(6, 4).sparse(sparse));
  torch::nn::Linear second(4, 1);
  torch::nn::Sequential net(first, second);
  torch::optim::SGD of_first(first->parameters(), 0.1), of_second(second->parameters(), 0.1);
  MixedPrecision mixed({net.ptr().get()}, {of_first, of_second}, {.dtype = at::kHalf});
  DistributedDataParallel ddp(net.ptr(), world);
  const auto result = ddp.run(
      plan(*world, 0), [&](size_t) { return net->forward(at::arange(6)).to(at::kFloat).square().mean(); }, mixed);
  const double norm = std::sqrt(result.square_sum) / result.loss_scale;
  mixed.unscale(sparse ? of_second : of_first, result);
  {
    const optim::UseHeldGradients use;
    for (const Tensor& each : sparse ? first->parameters() : second->parameters()) each.grad().mul_(1);
  }
  EXPECT_NEAR(mixed.step(sparse ? of_first : of_second, result).gradient_norm, norm, 1e-3 * norm);
}
TEST(AmpPresent, TheNormIsOfOneScale) {
  for (const char* changed : {"", "sparse"}) expect_ranks_pass("changed_beside_unscaled", 1, changed);
}

// argument: KIND.
RANK_PROGRAM(refused) {
  const auto world = join_world(context);
  for (const auto& [level, dtype] : {std::pair{OptLevel::kO0, at::kBFloat16}, {OptLevel::kO2, at::kHalf}}) {
    Trained one(*world, world, context.argument, level, dtype, 1);
    const optim::OptimizerRef optimizer = one.optimizer.ref();
    const Tensor before = one.weight();
    const auto gone = one.run(0, 1.0 / 64);
    one.mixed.zero_grad(optimizer);
    EXPECT_THAT(refusal([&] { one.mixed.step(optimizer, gone); }),
                HasSubstr("zero_grad() has come between run() and step()"));
    const auto zeroed = one.run(0, 1.0 / 64);
    one.net->zero_grad(/*set_to_none=*/false);
    EXPECT_THAT(refusal([&] { one.mixed.step(optimizer, zeroed); }),
                HasSubstr("zero_grad() has come between run() and step()"));
    one.mixed.zero_grad(optimizer);
    const auto not_finite = one.run(0, std::numeric_limits<double>::quiet_NaN());
    one.net->zero_grad(/*set_to_none=*/false);
    EXPECT_THAT(refusal([&] { one.mixed.step(optimizer, not_finite); }),
                HasSubstr("zero_grad() has come between run() and step()"));
    one.mixed.zero_grad(optimizer);
    EXPECT_TRUE(at::equal(one.weight(), before));
    const auto result = one.run(0, 1.0 / 64);
    EXPECT_THAT(refusal([&] { one.mixed.step({optimizer, optimizer}, result); }), HasSubstr("twice in a list"));
    EXPECT_TRUE(at::equal(one.weight(), before));
    one.mixed.step(optimizer, result);
    EXPECT_THAT(refusal([&] { one.mixed.step(optimizer, result); }), HasSubstr("step()"));
    one.mixed.zero_grad(optimizer);
    const auto next = one.run(1, 1.0 / 64);
    EXPECT_FALSE(one.mixed.step(optimizer, next).skipped) << "and goes on";
    world->communicator().barrier();
  }
}
TEST(AmpPresent, AStepThatWouldDoNothingOrTooMuchIsRefused) {
  for (const char* kind : kKinds) {
    for (const int ranks : {1, 2}) expect_ranks_pass("refused", ranks, kind);
  }
}

// Two optimizers of one network take one result, and the second one's gradients have changed since. argument: KIND.
RANK_PROGRAM(changed_after_the_verdict) {
  const auto world = join_world(context);
  Net net(1);
  const std::vector<Tensor> weights = net->parameters();
  const size_t half = weights.size() / 2;
  AnyOptimizer first(context.argument, {weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(half)}, *world);
  AnyOptimizer second(context.argument, {weights.begin() + static_cast<std::ptrdiff_t>(half), weights.end()}, *world);
  MixedPrecision mixed({net.get()}, {first.ref(), second.ref()}, {.opt_level = OptLevel::kO1, .dtype = at::kBFloat16});
  DistributedDataParallel ddp(net.ptr(), world);
  const StepPlan step = plan(*world, 0);
  const auto run = [&] {
    return ddp.run(
        step, [&](size_t i) { return loss_of(net, step, i, 1.0 / 64); }, mixed);
  };
  const Tensor& changed = weights[half];
  const auto clipped = run();
  mixed.step(first.ref(), clipped, {.max_norm = 1});
  changed.grad().mul_(0.5);
  EXPECT_THAT(refusal([&] { mixed.step(second.ref(), clipped, {.max_norm = 1}); }),
              HasSubstr("the norm that they are clipped by is from before"));
  mixed.zero_grad(first.ref());
  mixed.zero_grad(second.ref());
  const auto infinite = run();
  mixed.step(first.ref(), infinite);
  world->communicator().barrier();
  const Tensor before = changed.detach().clone();
  changed.grad().fill_(HUGE_VAL);
  EXPECT_THAT(refusal([&] { mixed.step(second.ref(), infinite); }), HasSubstr("are not finite now"));
  EXPECT_TRUE(at::equal(changed, before));
  world->communicator().barrier();
  changed.grad().fill_(0.5);
  mixed.step(second.ref(), infinite);
  world->communicator().barrier();
  EXPECT_FALSE(at::equal(changed, before));
}
TEST(AmpPresent, WhatOverflowsAfterTheVerdictIsRefused) {
  for (const char* kind : kKinds) {
    for (const int ranks : {1, 2}) expect_ranks_pass("changed_after_the_verdict", ranks, kind);
  }
}

// One optimizer over two networks: a result of one of them says nothing of the other's gradients, and a result of both
// steps once. argument: KIND.
RANK_PROGRAM(of_two_networks) {
  const auto world = join_world(context);
  Net one(1), two(2);
  std::vector<Tensor> weights = one->parameters();
  for (const Tensor& each : two->parameters()) weights.push_back(each);
  AnyOptimizer optimizer(context.argument, weights, *world);
  MixedPrecision mixed({one.get(), two.get()}, {optimizer.ref()}, {.opt_level = OptLevel::kO1, .dtype = at::kBFloat16});
  DistributedDataParallel ones(one.ptr(), world), twos(two.ptr(), world);
  const StepPlan step = plan(*world, 0);
  const auto of_one = ones.run(
      step, [&](size_t i) { return loss_of(one, step, i); }, mixed);
  const auto of_two = twos.run(
      step, [&](size_t i) { return loss_of(two, step, i, HUGE_VAL); }, mixed);
  for (const auto& result : {of_one, of_two}) {
    EXPECT_THAT(refusal([&] { mixed.step(optimizer.ref(), result); }),
                HasSubstr("not of all of the optimizer's weights"));
  }
  mixed.zero_grad(optimizer.ref());
  const auto of_both = DistributedDataParallel::run_together(
      {&ones, &twos}, step, [&](size_t i) { return loss_of(one, step, i) + loss_of(two, step, i); }, mixed);
  mixed.step(optimizer.ref(), of_both);
  EXPECT_THAT(refusal([&] { mixed.step(optimizer.ref(), of_both); }), HasSubstr("a second time by the same gradients"));
}
TEST(AmpPresent, OneOptimizerOverTwoNetworksStepsThemTogether) {
  for (const char* kind : kKinds) {
    for (const int ranks : {1, 2}) expect_ranks_pass("of_two_networks", ranks, kind);
  }
}

RANK_PROGRAM(of_another_network) {
  const auto world = join_world(context);
  Net one(1), two(2);
  const auto first = optim::make_optimizer("sgd", one->parameters(), {{"lr", 0.01}});
  const auto second = optim::make_optimizer("sgd", two->parameters(), {{"lr", 0.01}});
  MixedPrecision mixed({one.get(), two.get()}, {*first, *second}, {.opt_level = OptLevel::kO0});
  DistributedDataParallel ones(one.ptr(), world), twos(two.ptr(), world);
  const StepPlan step = plan(*world, 0);
  const auto of_one = ones.run(
      step, [&](size_t i) { return loss_of(one, step, i); }, mixed);
  const auto of_two = twos.run(
      step, [&](size_t i) { return loss_of(two, step, i); }, mixed);
  EXPECT_THAT(refusal([&] { mixed.step(*second, of_one); }), HasSubstr("a result of other networks"));
  mixed.step(*first, of_one);
  mixed.step(*second, of_two);
}
TEST(AmpPresent, AResultOfAnotherNetworkIsRefused) {
  for (const int ranks : {1, 2}) expect_ranks_pass("of_another_network", ranks);
}

}  // namespace
}  // namespace lockstep::parallel
