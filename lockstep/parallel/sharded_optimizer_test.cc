// Sharded against whole: ranks as processes over shared memory, and as threads over a network that is none.
#include "lockstep/parallel/sharded_optimizer.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/network/testing/local_mesh.h"
#include "lockstep/comm/single_communicator.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/world/world.h"
#include "support/ranks.h"

namespace lockstep::parallel {
namespace {

using optim::FusedOptimizer;
using testing_support::expect_ranks_pass;
using Tensors = std::vector<at::Tensor>;

struct Case {
  const char* name;
  optim::NamedOptions options;
  bool masters = false;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"sgd", {{"lr", 0.1}}},
      {"sgd", {{"lr", 0.1}, {"momentum", 0.9}, {"nesterov", true}, {"weight_decay", 0.01}}},
      {"adagrad", {{"lr", 0.1}, {"initial_accumulator_value", 0.1}}},
      {"adam", {{"lr", 0.1}, {"amsgrad", true}}},
      {"adamw", {{"lr", 0.01}}},
      {"nadam", {{"lr", 0.01}}},
      {"rmsprop", {{"lr", 0.01}, {"momentum", 0.9}, {"centered", true}, {"eps", 1e-3}}},
      {"adamw", {{"lr", 0.01}}, true},
      {"sgd", {{"lr", 0.1}, {"momentum", 0.9}}, true},
      {"adagrad", {{"lr", 0.1}, {"initial_accumulator_value", 0.1}}, true},
  };
  return all;
}

at::Tensor random(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed));
}

// A channels_last convolution of several blocks, small ones, a number, 16 bits, and one that gets no gradient.
Tensors weights(uint64_t seed) {
  Tensors parameters = {random({64, 32, 3, 3}, seed).contiguous(at::MemoryFormat::ChannelsLast),
                        random({64}, seed + 1),
                        random({}, seed + 2),
                        random({100, 129}, seed + 3).to(at::kBFloat16),
                        random({5000}, seed + 4),
                        random({90, 100}, seed + 5).t()};
  for (at::Tensor& parameter : parameters) parameter.requires_grad_();
  return parameters;
}
constexpr size_t kUnused = 4;

// Without a parameter's memory format, which the optimizer has to bring.
void set_gradients(const Tensors& parameters, int step) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (i == kUnused) continue;
    const at::Tensor& p = parameters[i];
    p.mutable_grad() = random(p.sizes(), 1000 + 10 * static_cast<uint64_t>(step) + i).to(p.scalar_type());
  }
}

std::unique_ptr<FusedOptimizer> make(const Case& c, const Tensors& p) {
  return optim::make_optimizer(
      c.name, {{{p[0], p[3], p[4], p[5]}, {}}, {{p[1], p[2]}, {{"lr", 0.05}, {"weight_decay", 0.0}}}}, c.options);
}

void train(optim::AnyOptimizer& optimizer, const Tensors& parameters, int first, int last) {
  for (int step = first; step < last; ++step) {
    set_gradients(parameters, step);
    optimizer.update({.grad_multiplier = 0.5, .clip_value = 0.6});
  }
}

void expect_equal(const Tensors& a, const Tensors& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << what << i;
    if (a[i].defined()) EXPECT_TRUE(at::equal(a[i], b[i])) << what << ' ' << i;
  }
}

void expect_equal(const optim::OptimizerState& a, const optim::OptimizerState& b) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    EXPECT_EQ(a.parameters[i].index, b.parameters[i].index);
    ASSERT_EQ(a.parameters[i].tensors.size(), b.parameters[i].tensors.size());
    for (size_t k = 0; k < a.parameters[i].tensors.size(); ++k) {
      EXPECT_EQ(a.parameters[i].tensors[k].name, b.parameters[i].tensors[k].name);
      EXPECT_TRUE(at::equal(a.parameters[i].tensors[k].value, b.parameters[i].tensors[k].value));
    }
  }
  ASSERT_EQ(a.groups.size(), b.groups.size());
  for (size_t g = 0; g < a.groups.size(); ++g) EXPECT_EQ(a.groups[g].parameters, b.groups[g].parameters);
}

void check_case(comm::Communicator& comm, const Case& c, bool shares) {
  SCOPED_TRACE(cat(c.name, ", rank ", comm.rank(), " of ", comm.size()));
  const bool leads = comm.rank() == 0;
  const Tensors ours = weights(leads ? 7 : 8), theirs = weights(7);  // rank 0's count
  const auto whole = make(c, theirs);
  ShardedOptimizer sharded(make(c, ours), comm);
  EXPECT_EQ(sharded.shares_weights(), shares);
  for (optim::AnyOptimizer* optimizer :
       {static_cast<optim::AnyOptimizer*>(whole.get()), static_cast<optim::AnyOptimizer*>(&sharded)}) {
    if (c.masters) optimizer->keep_masters();
    optimizer->keep_average(0.75);
  }
  train(*whole, theirs, 0, 3);
  train(sharded, ours, 0, 3);
  expect_equal(ours, theirs, "weights");
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(ours[i].strides(), theirs[i].strides());

  const auto state = sharded.state_dict();
  if (leads) expect_equal(state, whole->state_dict());
  const Tensors averages = sharded.averages();
  if (leads) expect_equal(averages, whole->averages(), "averages");
  const Tensors masters = sharded.masters();
  if (leads) expect_equal(masters, whole->masters(), "masters");
  whole->exchange_averages();
  sharded.exchange_averages();
  EXPECT_TRUE(sharded.has_exchanged_averages());
  expect_equal(ours, theirs, "averages in the weights' place");
  whole->exchange_averages();
  sharded.exchange_averages();

  // Another run goes on from a whole state.
  const Tensors resumed = weights(7);
  auto taken_over = make(c, resumed);
  if (c.masters) taken_over->keep_masters();
  ShardedOptimizer other(std::move(taken_over), comm);
  other.keep_average(0.75);
  if (leads || !shares) {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < resumed.size(); ++i) resumed[i].copy_(theirs[i]);
  }
  comm.barrier();
  other.load_state_dict(whole->state_dict());
  other.load_averages(whole->averages());
  if (c.masters) other.load_masters(whole->masters());
  sharded.set_lr(0.03);
  other.set_lr(0.03);
  whole->set_lr(0.03);
  train(*whole, theirs, 3, 5);
  train(sharded, ours, 3, 5);
  train(other, resumed, 3, 5);
  expect_equal(ours, theirs, "weights");
  expect_equal(resumed, theirs, "weights of the resumed");
  const Tensors later = other.averages();
  if (leads) expect_equal(later, whole->averages(), "averages of the resumed");
  comm.barrier();  // rank 0 keeps the weights until all have looked
}

void check_all(comm::Communicator& comm, bool shares) {
  for (const Case& c : cases()) check_case(comm, c, shares);
}

std::unique_ptr<World> join(testing_support::RankContext& context) {
  const rendezvous::Place place{.rank = context.rank,
                                .size = context.size,
                                .local_rank = context.rank,
                                .local_size = context.size,
                                .launcher = "test",
                                .rendezvous = ""};
  return std::make_unique<World>(place, std::move(context.memory),
                                 WorldOptions{.backend = "shm", .timeout = std::chrono::seconds(30)});
}

RANK_PROGRAM(sharded_over_shared_memory) {
  const auto world = join(context);
  check_all(world->communicator(), true);
}

TEST(ShardedOptimizer, GivesTheWholeOnesBitsOverSharedMemory) {
  for (const int size : {2, 3, 4}) expect_ranks_pass("sharded_over_shared_memory", size);
}

TEST(ShardedOptimizer, GivesTheWholeOnesBitsOverANetwork) {
  for (const int size : {2, 3}) {
    comm::testing::LocalWorld{.size = size}.run([](comm::Communicator& comm) { check_all(comm, false); });
  }
}

TEST(ShardedOptimizer, IsTheWholeOneInAWorldOfOne) {
  comm::SingleCommunicator comm;
  check_all(comm, true);
}

RANK_PROGRAM(weights_live_once) {
  Tensors parameters;
  {
    const auto world = join(context);
    auto& comm = world->communicator();
    parameters = weights(7);
    const size_t before = world->pool().stats().in_use;
    {
      const ShardedOptimizer sharded(make(cases()[4], parameters), comm);
      if (comm.rank() > 0) EXPECT_LT(world->pool().stats().in_use + 60000, before) << "this rank's are gone";
    }
    const at::NoGradGuard no_grad;
    comm.barrier();
    if (comm.rank() == 1) parameters[0].fill_(3);
    comm.barrier();
    EXPECT_TRUE(parameters[0].eq(3).all().item<bool>()) << "and stay shared without the optimizer";
    comm.barrier();
  }
  EXPECT_EQ(parameters[0].sum().item<float>(), 3 * 64 * 32 * 9) << "and mapped without the world";
}

TEST(ShardedOptimizer, WeightsLiveOnceForAllRanks) { expect_ranks_pass("weights_live_once", 3); }

RANK_PROGRAM(gathers_on_some) {
  const auto world = join(context);
  auto& comm = world->communicator();
  const Case c = cases()[0];
  const Tensors ours = weights(7), theirs = weights(7);
  const auto whole = make(c, theirs);
  ShardedOptimizer sharded(make(c, ours), comm);
  EXPECT_THROW(sharded.gather_on({0, 3}), BugError);
  sharded.gather_on({0, 2});
  train(*whole, theirs, 0, 2);
  train(sharded, ours, 0, 2);
  const auto state = sharded.state_dict();
  if (comm.rank() == 1) {
    EXPECT_TRUE(state.parameters.empty());
  } else {
    expect_equal(state, whole->state_dict());
  }
  comm.barrier();
}

TEST(ShardedOptimizer, IsWholeWhereItIsToldToGather) { expect_ranks_pass("gathers_on_some", 3); }

// As a load of weights by one rank, or a clamp: only the writer's process counts the write.
RANK_PROGRAM(masters_follow_writes) {
  const auto world = join(context);
  auto& comm = world->communicator();
  const Tensors parameters = weights(7);
  ShardedOptimizer sharded(make(cases()[0], parameters), comm);
  sharded.keep_masters();
  train(sharded, parameters, 0, 1);
  for (int writer = 0; writer < comm.size(); ++writer) {
    const at::NoGradGuard no_grad;
    comm.barrier();
    if (comm.rank() == writer) at::Tensor(parameters[3]).fill_(0.5 + writer);
    comm.barrier();
    for (const at::Tensor& parameter : parameters) parameter.mutable_grad() = at::zeros_like(parameter);
    sharded.update({});
    EXPECT_TRUE(at::equal(parameters[3], at::full_like(parameters[3], 0.5 + writer))) << "written by " << writer;
    const Tensors masters = sharded.masters();
    if (comm.rank() == 0) EXPECT_TRUE(at::equal(masters[1].to(at::kBFloat16), parameters[3]));
  }
  comm.barrier();
}

TEST(ShardedOptimizer, AllRanksMastersFollowWhatOneRankWrites) { expect_ranks_pass("masters_follow_writes", 3); }

RANK_PROGRAM(other_layout) {
  const auto world = join(context);
  Tensors parameters = weights(7);
  if (context.rank == 1) parameters[0].set_data(parameters[0].detach().contiguous());
  try {
    const ShardedOptimizer sharded(make(cases()[0], parameters), world->communicator());
    EXPECT_EQ(context.rank, 0);
  } catch (const ConfigError& error) {
    EXPECT_EQ(context.rank, 1);
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 1: tensor 0 is a CPUFloatType of shape [64, 32, 3, 3]"));
  }
}

TEST(ShardedOptimizer, AnotherMemoryFormatOnARankIsNamed) { expect_ranks_pass("other_layout", 2); }

TEST(ShardedOptimizer, GradientsAreNotHeldOnTo) {
  comm::SingleCommunicator comm;
  const Tensors parameters = weights(1);
  ShardedOptimizer sharded(make(cases()[1], parameters), comm);
  train(sharded, parameters, 0, 2);
  EXPECT_EQ(parameters[1].grad().storage().use_count(), 1) << "backward may take it apart";
}

TEST(ShardedOptimizer, SaysWhatItCantTake) {
  comm::SingleCommunicator comm;
  const Tensors parameters = weights(1);
  for (const std::string name : {"lamb", "lars", "novograd"}) {
    try {
      const ShardedOptimizer sharded(optim::make_optimizer(name, parameters), comm);
      FAIL() << name;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.what(), name + " can't be sharded: its elements depend on each other; use it whole");
    }
  }
  ShardedOptimizer sharded(make(cases()[4], parameters), comm);
  train(sharded, parameters, 0, 1);
  auto state = sharded.state_dict();
  state.parameters[0].tensors[1].value = at::ones({3});
  try {
    sharded.load_state_dict(state);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("adamw: state of parameter 0: \"exp_avg\" is CPUFloatType of shape"));
  }
}

}  // namespace
}  // namespace lockstep::parallel
