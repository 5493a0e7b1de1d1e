// Mixed precision and data parallelism together, on real ranks: amp::MixedPrecision gives run() its scale and its
// casts, step() takes what run() returns, and nothing else takes scaled gradients.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <fstream>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
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

constexpr int kLanes = 4;

struct NetImpl : torch::nn::Module {
  explicit NetImpl(uint64_t seed) {
    at::manual_seed(seed);
    first = register_module("first", torch::nn::Linear(4, 32));
    norm = register_module("norm", torch::nn::BatchNorm1d(32));
    last = register_module("last", torch::nn::Linear(32, 1));
  }
  Tensor forward(const Tensor& x) { return last->forward(norm->forward(first->forward(x)).relu()); }
  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Net);

StepPlan plan(const World& world, int64_t number) {
  StepPlan step{.number = number, .samples = kLanes * 8, .lanes = {}};
  const auto own = world.own_lanes(kLanes);
  for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, 8});
  return step;
}

Tensor loss_of(Net& net, const StepPlan& step, size_t i, double factor = 1) {
  at::manual_seed(static_cast<uint64_t>(100 + step.lanes[i].index));
  const Tensor x = at::randn({8, 4});
  return at::mse_loss(net->forward(x).to(at::kFloat), x.sum(1, true)) * factor;
}

// "libtorch", "ours" or "sharded".
struct AnyOptimizer {
  std::unique_ptr<torch::optim::Optimizer> whole;
  std::unique_ptr<ShardedOptimizer> sharded;

  AnyOptimizer(const std::string& kind, const std::vector<Tensor>& parameters, World& world) {
    const optim::NamedOptions options = {{"lr", 0.02}, {"momentum", 0.9}};
    if (kind == "libtorch") {
      whole = std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.02).momentum(0.9));
    } else if (kind == "ours") {
      whole = optim::make_optimizer("sgd", parameters, options);
    } else {
      sharded =
          std::make_unique<ShardedOptimizer>(optim::make_optimizer("sgd", parameters, options), world.communicator());
    }
  }
  optim::OptimizerRef ref() const {
    if (sharded) return *sharded;
    return *whole;
  }
};

std::string hash_of(const std::vector<Tensor>& tensors) {
  Sha256 hash;
  for (const Tensor& tensor : tensors) {
    const Tensor dense = tensor.detach().contiguous();
    hash.update(dense.data_ptr(), dense.nbytes());
  }
  return hash.hex();
}

// argument: KIND LEVEL half|bfloat FILE, to which rank 0 writes its losses and weights.
RANK_PROGRAM(amp_loop) {
  const auto world = join_world(context);
  std::istringstream arguments(context.argument);
  std::string kind, level, dtype, file;
  arguments >> kind >> level >> dtype >> file;
  Net net(kind == "ours" ? 1 + static_cast<uint64_t>(context.rank) : 1);  // rank 0's count
  const AnyOptimizer optimizer(kind, net->parameters(), *world);
  const Tensor exact = net->first->weight.detach().clone();
  MixedPrecision mixed(
      {net.get()}, {optimizer.ref()},
      {.opt_level = amp::parse_opt_level(level), .dtype = dtype == "half" ? at::kHalf : at::kBFloat16});
  DistributedDataParallel ddp(net.ptr(), world, {.seed = 3});
  if (level == "O2" && context.rank == 0) {
    EXPECT_TRUE(at::equal(mixed.masters(optimizer.ref())[0], exact)) << "not the rounded weights";
  } else if (level == "O2" && kind == "sharded") {
    mixed.masters(optimizer.ref());  // with rank 0
  }
  double first = 0, last = 0;
  int skipped = 0;
  for (int64_t number = 0; number < 30; ++number) {
    const StepPlan step = plan(*world, number);
    const double factor = number == 5 && dtype == "half" ? HUGE_VAL : 1;
    const auto result = ddp.run(
        step, [&](size_t i) { return loss_of(net, step, i, factor); }, mixed);
    const auto report = mixed.step(optimizer.ref(), result, {.max_norm = 5});
    skipped += report.skipped ? 1 : 0;
    mixed.zero_grad(optimizer.ref());
    if (number == 0) first = result.loss;
    last = result.loss;
  }
  EXPECT_LT(last, 0.5 * first);
  EXPECT_GE(skipped, dtype == "half" ? 1 : 0);
  std::vector<Tensor> state = net->parameters();
  for (const Tensor& master : mixed.masters(optimizer.ref())) {
    if (!master.defined()) continue;
    state.push_back(master.detach());
    if (kind == "sharded") continue;  // whole on rank 0
    const Tensor of_rank_0 = master.detach().clone();
    world->communicator().broadcast(of_rank_0, 0);
    EXPECT_TRUE(at::equal(master, of_rank_0));
  }
  if (context.rank == 0) std::ofstream(file) << std::hexfloat << last << ' ' << hash_of(state);
  world->communicator().barrier();  // shared weights are rank 0's
}

TEST(AmpLoop, AnyOptimizerHasTheSameBitsOnAnyNumberOfRanks) {
  for (const char* kind : {"libtorch", "ours", "sharded"}) {
    for (const char* precision : {"O1 half", "O2 half", "O3 bfloat"}) {
      std::string expected;
      for (const int ranks : {1, 2, 4}) {
        const std::string file = testing::TempDir() + "amp_loop." + std::to_string(getpid());
        expect_ranks_pass("amp_loop", ranks, cat(kind, ' ', precision, ' ', file));
        std::string loss, hash;
        std::ifstream(file) >> loss >> hash;
        unlink(file.c_str());
        ASSERT_EQ(hash.size(), 64u);
        if (ranks == 1) expected = loss + hash;
        EXPECT_EQ(loss + hash, expected) << kind << ' ' << precision << " on " << ranks << " ranks";
      }
    }
  }
}

struct SparseNetImpl : torch::nn::Module {
  explicit SparseNetImpl(bool sparse) {
    at::manual_seed(1);
    words = register_module("words", torch::nn::Embedding(torch::nn::EmbeddingOptions(40, 8).sparse(sparse)));
    last = register_module("last", torch::nn::Linear(8, 1));
  }
  Tensor forward(const Tensor& x) { return last->forward(words->forward(x).mean(1)); }
  torch::nn::Embedding words{nullptr};
  torch::nn::Linear last{nullptr};
};
TORCH_MODULE(SparseNet);

// Six steps, with clipping and an overflow. Returns how far the masters, or the weights, have moved.
std::vector<Tensor> train_sparse(const std::shared_ptr<World>& world, const std::string& optimizer_name, OptLevel level,
                                 bool sparse) {
  SparseNet net(sparse);
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (optimizer_name == "libtorch's adagrad") {
    optimizer = std::make_unique<torch::optim::Adagrad>(net->parameters(), torch::optim::AdagradOptions(0.1));
  } else if (optimizer_name == "libtorch's sgd") {
    optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1));
  } else {
    optimizer = optim::make_optimizer(optimizer_name, net->parameters(), {{"lr", 0.1}});
  }
  MixedPrecision mixed({net.get()}, {*optimizer}, {.opt_level = level, .dtype = at::kHalf, .loss_scale = 1024.0});
  DistributedDataParallel ddp(net.ptr(), world);
  std::vector<Tensor> before;
  for (const Tensor& each : mixed.master_params(*optimizer)) before.push_back(each.detach().clone());
  for (int64_t number = 0; number < 6; ++number) {
    const StepPlan step = plan(*world, number);
    const auto result = ddp.run(
        step,
        [&](size_t i) {
          at::manual_seed(static_cast<uint64_t>(10 * number + step.lanes[i].index));
          const Tensor out = net->forward(at::randint(0, 40, {8, 3}, at::kLong)).to(at::kFloat);
          return out.sub(3).square().mean() * (number == 2 ? HUGE_VAL : 1);
        },
        mixed);
    EXPECT_EQ(net->words->weight.grad().is_sparse(), sparse);
    EXPECT_EQ(mixed.step(*optimizer, result, {.max_norm = 2, .max_value = 0.5}).skipped, number == 2);
    mixed.zero_grad(*optimizer);
  }
  std::vector<Tensor> stepped;
  for (const Tensor& each : mixed.master_params(*optimizer)) stepped.push_back(each.detach() - before[stepped.size()]);
  return stepped;
}

// The rows of all lanes are added up in fp32 where gradients are dense, too, but not in the same order.
RANK_PROGRAM(sparse_gradients) {
  const auto world = join_world(context);
  for (const std::string name : {"sgd", "adagrad", "libtorch's sgd", "libtorch's adagrad"}) {
    for (const auto level : {OptLevel::kO1, OptLevel::kO2}) {
      const auto sparse = train_sparse(world, name, level, true), dense = train_sparse(world, name, level, false);
      for (size_t i = 0; i < 2; ++i) {
        const double moved = dense[i].abs().max().item<double>();
        EXPECT_GT(moved, 0.005) << name;
        EXPECT_LT((sparse[i] - dense[i]).abs().max().item<double>(), 0.03 * moved)
            << name << ' ' << name_of(level) << " moved by " << moved;
      }
    }
  }
}
TEST(AmpLoop, SparseGradientsAreUnscaledClippedAndStepped) {
  for (const int ranks : {1, 2}) expect_ranks_pass("sparse_gradients", ranks);
}

RANK_PROGRAM(forgotten_amp) {
  const auto world = join_world(context);
  Net net(1), other(2);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.02));
  const MixedPrecision mixed({net.get()}, {sgd}, {.opt_level = OptLevel::kO1, .dtype = at::kHalf});
  DistributedDataParallel ddp(net.ptr(), world), unmixed(other.ptr(), world);
  const StepPlan step = plan(*world, 0);
  EXPECT_THAT(refusal([&] {
                unmixed.run(
                    step, [&](size_t i) { return loss_of(other, step, i); }, mixed);
              }),
              HasSubstr("the network was not given to this MixedPrecision"));
  EXPECT_THAT(refusal([&] { ddp.run(step, [&](size_t i) { return loss_of(net, step, i); }); }),
              HasSubstr("step 0: the network is in mixed precision, O1 float16, with a loss scale of 65536, and run() "
                        "was given 1; give it the MixedPrecision"));
}
TEST(AmpLoop, ARunThatForgetsTheScaleIsRefused) { expect_ranks_pass("forgotten_amp", 1); }

// argument: O1 or O2.
RANK_PROGRAM(step_by_itself) {
  const auto world = join_world(context);
  Net net(1), other(2);
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(0.02));
  const auto ours = optim::make_optimizer("adam", other->parameters(), {});
  MixedPrecision mixed({net.get(), other.get()}, {adam, *ours},
                       {.opt_level = amp::parse_opt_level(context.argument), .dtype = at::kHalf});
  DistributedDataParallel first(net.ptr(), world), second(other.ptr(), world);
  const StepPlan step = plan(*world, 0);
  const std::vector<Tensor> before = {net->last->weight.detach().clone(), other->last->weight.detach().clone()};
  const auto result = DistributedDataParallel::run_together(
      {&first, &second}, step,
      [&](size_t i) { return loss_of(net, step, i, 1.0 / 1024) + loss_of(other, step, i, 1.0 / 1024); }, mixed);
  EXPECT_EQ(result.loss_scale, 65536);
  const bool masters = context.argument == "O2";
  EXPECT_THAT(refusal([&] { adam.step(); }),
              HasSubstr(masters ? "is of an fp32 master" : "a loss scale of 65536 in it"));
  EXPECT_THAT(refusal([&] { ours->step(); }), HasSubstr("a loss scale of 65536 in it"));
  for (const auto& parameters : {net->parameters(), other->parameters()}) {
    EXPECT_THAT(refusal([&] { torch::nn::utils::clip_grad_norm_(parameters, 1); }), HasSubstr("a loss scale of 65536"));
  }
  EXPECT_TRUE(at::equal(net->last->weight, before[0]) && at::equal(other->last->weight, before[1]));
  const auto report = mixed.step({adam, *ours}, result);
  EXPECT_FALSE(report.skipped);
  EXPECT_FALSE(at::equal(net->last->weight, before[0]) || at::equal(other->last->weight, before[1]));
}
TEST(AmpLoop, NobodyElseTakesScaledGradients) {
  for (const char* level : {"O1", "O2"}) expect_ranks_pass("step_by_itself", 2, level);
}

// Without a scale libtorch's optimizer would step masters, and the model would stay as it is.
RANK_PROGRAM(masters_by_themselves) {
  const auto world = join_world(context);
  Net net(1);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.02));
  MixedPrecision mixed({net.get()}, {sgd}, {.opt_level = OptLevel::kO2});
  DistributedDataParallel ddp(net.ptr(), world);
  const StepPlan step = plan(*world, 0);
  sgd.zero_grad();
  const auto result = ddp.run(
      step, [&](size_t i) { return loss_of(net, step, i); }, mixed);
  EXPECT_THAT(refusal([&] { sgd.step(); }), HasSubstr("is of an fp32 master"));
  mixed.step(sgd, result);
}
TEST(AmpLoop, TheOptimizersOwnStepOfMastersIsRefused) { expect_ranks_pass("masters_by_themselves", 2); }

RANK_PROGRAM(two_scales) {
  const auto world = join_world(context);
  Net net(1);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.02));
  MixedPrecision mixed({net.get()}, {sgd}, {.opt_level = OptLevel::kO1, .dtype = at::kHalf, .num_losses = 2});
  auto state = mixed.state_dict();
  state["loss_scaler1"]["scale"] = state["loss_scaler1"]["loss_scale"] = 256;
  mixed.load_state_dict(state);
  DistributedDataParallel ddp(net.ptr(), world);
  const StepPlan step = plan(*world, 0);
  const auto loss = [&](size_t i) { return loss_of(net, step, i); };
  const auto first = ddp.run(step, loss, mixed, /*loss_id=*/0);
  EXPECT_EQ(first.loss_scale, 65536);
  const auto both = ddp.run(step, loss, mixed, /*loss_id=*/0);
  EXPECT_NEAR(both.square_sum, 4 * first.square_sum, 0.01 * both.square_sum) << "losses of one step add up";
  EXPECT_THAT(refusal([&] { mixed.step(sgd, both, {}, /*loss_id=*/1); }), HasSubstr("and the loss scale is 256"));
  EXPECT_THAT(refusal([&] { ddp.run(step, loss, mixed, /*loss_id=*/1); }),
              HasSubstr("holds the gradient of a loss times 65536, to which that of a loss times 256 can't be added"));
}
TEST(AmpLoop, LossesOfTwoScalesDoNotAddUp) { expect_ranks_pass("two_scales", 1); }

// Two optimizers of libtorch's step masters by one loss's gradients, of which the other loss's scale is none.
RANK_PROGRAM(masters_of_two_scales) {
  const auto world = join_world(context);
  Net net(1);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.02));
  MixedPrecision mixed({net.get()}, {sgd}, {.opt_level = OptLevel::kO2, .dtype = at::kHalf, .num_losses = 2});
  auto state = mixed.state_dict();
  state["loss_scaler1"]["scale"] = state["loss_scaler1"]["loss_scale"] = 256;
  mixed.load_state_dict(state);
  DistributedDataParallel ddp(net.ptr(), world);
  const StepPlan step = plan(*world, 0);
  auto result = ddp.run(
      step, [&](size_t i) { return loss_of(net, step, i, 1.0 / 1024); }, mixed, /*loss_id=*/0);
  result.loss_scale = 256;  // as the other loss's result has it
  EXPECT_THAT(refusal([&] { mixed.step(sgd, result, {}, /*loss_id=*/1); }), HasSubstr("a loss scale of 65536 in it"));
}
TEST(AmpLoop, MastersTakeGradientsOfTheirScaleAlone) { expect_ranks_pass("masters_of_two_scales", 1); }

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
