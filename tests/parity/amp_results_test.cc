// Steps by what run() returns, on real ranks: one verdict for each result, whoever is stepped by it and whatever is
// done in between.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <future>

#include "amp_loops.h"
#include "lockstep/amp/cast_functions.h"
#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/sharded_optimizer.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using amp::MixedPrecision;
using amp::OptLevel;
using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::refusal;

// PyTorch's step(a), step(b), update(): one result is one verdict, whoever is stepped by it.
RANK_PROGRAM(two_optimizers) {
  const auto world = join_world(context);
  Net net(1);
  const auto all = net->parameters();
  const auto first = optim::make_optimizer("sgd", {all[0], all[1], all[2]}, {{"lr", 0.01}});
  torch::optim::SGD second({all[3], all[4], all[5]}, torch::optim::SGDOptions(0.01));
  MixedPrecision mixed({net.get()}, {*first, second}, {.opt_level = OptLevel::kO1, .dtype = at::kHalf});
  DistributedDataParallel ddp(net.ptr(), world);
  for (int64_t number = 0; number < 6; ++number) {
    const StepPlan step = plan(*world, number);
    const double factor = number == 3 ? HUGE_VAL : 1.0 / 1024;
    const std::vector<Tensor> before = {all[0].detach().clone(), all[4].detach().clone()};
    const auto result = ddp.run(
        step, [&](size_t i) { return loss_of(net, step, i, factor); }, mixed);
    for (const optim::OptimizerRef& each : {optim::OptimizerRef(*first), optim::OptimizerRef(second)}) {
      const auto report = mixed.step(each, result);
      EXPECT_EQ(report.skipped, number == 3);
      EXPECT_EQ(report.finite, number != 3);
      mixed.zero_grad(each);
    }
    EXPECT_EQ(at::equal(all[0], before[0]), number == 3);
    EXPECT_EQ(at::equal(all[4], before[1]), number == 3);
    EXPECT_EQ(mixed.loss_scale(), number < 3 ? 65536 : 32768) << number;
    EXPECT_EQ(mixed.scaler().state().good_steps, number < 3 ? number + 1 : number - 3) << number;
  }
}
TEST(AmpLoop, TwoOptimizersOfOneResultShareItsVerdict) { expect_ranks_pass("two_optimizers", 2); }

// In bf16 there is no scale that would tell.
RANK_PROGRAM(without_mixed) {
  const auto world = join_world(context);
  Net net(1);
  const auto optimizer = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.01}});
  MixedPrecision mixed({net.get()}, {*optimizer}, {.opt_level = OptLevel::kO1, .dtype = at::kBFloat16});
  DistributedDataParallel ddp(net.ptr(), world);
  const StepPlan step = plan(*world, 0);
  const auto loss = [&](size_t i) { return loss_of(net, step, i, 1); };
  ddp.run(step, loss, mixed);
  mixed.zero_grad(*optimizer);
  ddp.run(plan(*world, 1), [&](size_t i) { return mixed.forward([&] { return loss(i); }); });
  mixed.zero_grad(*optimizer);
  EXPECT_THAT(refusal([&] { ddp.run(plan(*world, 2), loss); }),
              HasSubstr("mixed precision, O1 bfloat16, and the step's function computed without its casts"));
}
TEST(AmpLoop, ARunThatIsNotGivenItsMixedPrecisionIsRefused) { expect_ranks_pass("without_mixed", 2); }

// Steps that compute as their level says, or in fp32 on purpose, without run() knowing of the autocast.
RANK_PROGRAM(casts_of_ones_own) {
  const auto world = join_world(context);
  Net net(1), narrow(2);
  const auto optimizer = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.01}});
  MixedPrecision mixed({net.get()}, {*optimizer}, {.opt_level = OptLevel::kO1, .dtype = at::kBFloat16});
  MixedPrecision of_narrow({narrow.get()}, {}, {.opt_level = OptLevel::kO3, .dtype = at::kBFloat16});
  DistributedDataParallel ddp(net.ptr(), world), ddp_narrow(narrow.ptr(), world);
  int64_t number = 0;
  const auto run = [&](const std::function<Tensor(const StepPlan&, size_t)>& loss) {
    const StepPlan step = plan(*world, number++);
    ddp.run(step, [&](size_t i) { return loss(step, i); });
    net->zero_grad();
  };
  run([&](const StepPlan& step, size_t i) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const Tensor loss = loss_of(net, step, i, 1);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return loss;
  });
  run([&](const StepPlan& step, size_t i) {
    return std::async(std::launch::async, [&] { return mixed.forward([&] { return loss_of(net, step, i, 1); }); })
        .get();
  });
  const StepPlan in_fp32 = plan(*world, number++);
  ddp.run(
      in_fp32,
      [&](size_t i) {
        const amp::DisableCasts none;
        return loss_of(net, in_fp32, i, 1);
      },
      mixed);
  const StepPlan step = plan(*world, 0);
  ddp_narrow.run(step, [&](size_t i) {
    const Tensor x = at::ones({step.lanes[i].samples, 4});
    return narrow->forward(of_narrow.cast_inputs(x)).to(at::kFloat).square().mean();
  });
}
TEST(AmpLoop, CastsOfOnesOwnArePossible) { expect_ranks_pass("casts_of_ones_own", 2); }

// A GAN whose two losses were run before either is stepped: the second result has the scale from before.
RANK_PROGRAM(two_results) {
  const auto world = join_world(context);
  Net one(1), two(2);
  const auto first = optim::make_optimizer("sgd", one->parameters(), {{"lr", 0.01}});
  const auto second = optim::make_optimizer("sgd", two->parameters(), {{"lr", 0.01}});
  MixedPrecision mixed({one.get(), two.get()}, {*first, *second}, {.opt_level = OptLevel::kO1, .dtype = at::kHalf});
  auto state = mixed.state_dict();
  state["loss_scaler0"]["growth_interval"] = 3;
  mixed.load_state_dict(state);
  DistributedDataParallel ones(one.ptr(), world), twos(two.ptr(), world);
  std::vector<double> scales;
  for (int64_t number = 0; number < 5; ++number) {
    const StepPlan step = plan(*world, number);
    const auto loss = [&](Net& net, bool overflows) {
      return [&, overflows](size_t i) { return loss_of(net, step, i, overflows ? HUGE_VAL : 1.0 / 4096); };
    };
    const auto a = ones.run(step, loss(one, number == 1 || number == 2), mixed);
    const auto b = twos.run(step, loss(two, number == 2), mixed);
    const Tensor before = two->first->weight.detach().clone();
    mixed.step(*first, a);
    const auto report = mixed.step(*second, b);
    EXPECT_EQ(report.skipped, number == 2);
    EXPECT_EQ(at::equal(two->first->weight, before), number == 2);
    mixed.zero_grad(*first);
    mixed.zero_grad(*second);
    scales.push_back(mixed.loss_scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{65536, 32768, 16384, 16384, 32768})) << "an overflow of both counts once";
  const StepPlan step = plan(*world, 9);
  const auto old = ones.run(
      step, [&](size_t i) { return loss_of(one, step, i, 1); }, mixed);
  for (const double sum : {HUGE_VAL, HUGE_VAL}) {
    mixed.step(std::vector<optim::OptimizerRef>{}, {.square_sum = sum, .loss_scale = mixed.loss_scale()});
  }
  EXPECT_THAT(refusal([&] { mixed.step(*first, old); }), HasSubstr("and the loss scale is 8192"));
}
TEST(AmpLoop, AResultOfTheScaleBeforeIsSteppedByThatScale) { expect_ranks_pass("two_results", 2); }

// Code of one's own between run() and step(), such as an adaptive clip. argument: LEVEL KIND.
RANK_PROGRAM(unscaled_by_hand) {
  const auto world = join_world(context);
  std::istringstream arguments(context.argument);
  std::string level, kind;
  arguments >> level >> kind;
  std::vector<Tensor> results;
  for (const bool by_hand : {true, false}) {
    Net net(1);
    const AnyOptimizer optimizer(kind, net->parameters(), *world);
    MixedPrecision mixed({net.get()}, {optimizer.ref()},
                         {.opt_level = amp::parse_opt_level(level), .dtype = at::kHalf});
    DistributedDataParallel ddp(net.ptr(), world);
    const Tensor before = mixed.master_params(optimizer.ref())[0].detach().clone();
    for (int64_t number = 0; number < 5; ++number) {
      const StepPlan step = plan(*world, number);
      const auto result = ddp.run(
          step, [&](size_t i) { return loss_of(net, step, i, number == 2 ? HUGE_VAL : 1.0 / 16); }, mixed);
      amp::StepReport report;
      if (by_hand) {
        const auto unscaled = mixed.unscale(optimizer.ref(), result);
        if (number != 2) {
          EXPECT_THAT(refusal([&] { mixed.step(optimizer.ref(), result); }), HasSubstr("step() after unscale()"));
          for (const Tensor& each : mixed.master_params(optimizer.ref())) {
            EXPECT_LT(each.grad().abs().max().item<double>(), 100);
            each.grad().mul_(0.25);
          }
        }
        EXPECT_THAT(refusal([&] { mixed.step(optimizer.ref(), unscaled, {.max_norm = 1}); }),
                    HasSubstr("max_norm after unscale()"));
        report = mixed.step(optimizer.ref(), unscaled);
      } else {
        report =
            mixed.step(optimizer.ref(), result, {.max_norm = 0.25 * std::sqrt(result.square_sum) / result.loss_scale});
      }
      EXPECT_EQ(report.skipped, number == 2);
      EXPECT_EQ(mixed.loss_scale(), number < 2 ? 65536 : 32768);
      mixed.zero_grad(optimizer.ref());
    }
    results.push_back(mixed.master_params(optimizer.ref())[0].detach() - before);
    world->communicator().barrier();  // shared weights are rank 0's
  }
  EXPECT_GT(results[0].abs().max().item<double>(), 1e-3);
  EXPECT_TRUE(at::allclose(results[0], results[1], 0.01, 1e-6)) << (results[0] - results[1]).abs().max();
}
TEST(AmpLoop, UnscaledGradientsCanBeChangedBeforeTheStep) {
  for (const char* argument : {"O1 ours", "O1 libtorch", "O2 libtorch", "O1 sharded"}) {
    expect_ranks_pass("unscaled_by_hand", 2, argument);
  }
}

RANK_PROGRAM(narrow_unscale) {
  const auto world = join_world(context);
  Net net(1);
  const AnyOptimizer optimizer("ours", net->parameters(), *world);
  MixedPrecision mixed({net.get()}, {optimizer.ref()}, {.opt_level = OptLevel::kO2, .dtype = at::kHalf});
  DistributedDataParallel ddp(net.ptr(), world);
  const StepPlan step = plan(*world, 0);
  const auto result = ddp.run(
      step, [&](size_t i) { return loss_of(net, step, i); }, mixed);
  EXPECT_THAT(refusal([&] { mixed.unscale(optimizer.ref(), result); }),
              HasSubstr("is CPUHalfType, in which small values would be lost"));
  mixed.step(optimizer.ref(), result);
}
TEST(AmpLoop, GradientsOf16BitsStayScaled) { expect_ranks_pass("narrow_unscale", 1); }

// LAMB clips by the norm of its own gradients, of which the result's sum of squares has more.
RANK_PROGRAM(lamb_of_a_part) {
  const auto world = join_world(context);
  std::vector<Tensor> results;
  for (const bool through_mixed : {true, false}) {
    Net net(1);
    const auto all = net->parameters();
    const auto lamb = optim::make_optimizer("lamb", {all[0], all[1]}, {{"lr", 0.01}, {"max_grad_norm", 1e-3}});
    const auto rest = optim::make_optimizer("sgd", {all[2], all[3], all[4], all[5]}, {{"lr", 0.01}});
    MixedPrecision mixed({net.get()}, {*lamb, *rest}, {.opt_level = OptLevel::kO0});
    DistributedDataParallel ddp(net.ptr(), world);
    for (int64_t number = 0; number < 5; ++number) {
      const StepPlan step = plan(*world, number);
      const auto result = ddp.run(
          step, [&](size_t i) { return loss_of(net, step, i, number % 2 == 0 ? 1 : 30); }, mixed);
      for (auto* each : {lamb.get(), rest.get()}) {
        if (through_mixed) {
          mixed.step(*each, result);
        } else {
          each->step();
        }
      }
      net->zero_grad();
    }
    results.push_back(all[0].detach().clone());
  }
  EXPECT_TRUE(at::equal(results[0], results[1]));
}
TEST(AmpLoop, LambOfAPartTakesItsOwnNorm) { expect_ranks_pass("lamb_of_a_part", 2); }

}  // namespace
}  // namespace lockstep::parallel
