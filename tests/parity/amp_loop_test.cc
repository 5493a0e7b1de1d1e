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

#include "amp_loops.h"
#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/testing/long_test.h"
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
  LOCKSTEP_LONG_TEST_IF(true);
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
              HasSubstr("holds gradients of loss 0, and those of loss 1 can't be added"));
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
  result.loss_id = 1;
  EXPECT_THAT(refusal([&] { mixed.step(sgd, result, {}, /*loss_id=*/1); }), HasSubstr("a loss scale of 65536 in it"));
}
TEST(AmpLoop, MastersTakeGradientsOfTheirScaleAlone) { expect_ranks_pass("masters_of_two_scales", 1); }

}  // namespace
}  // namespace lockstep::parallel
