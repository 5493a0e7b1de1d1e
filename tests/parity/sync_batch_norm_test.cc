// SyncBatchNorm over several ranks and lanes against BatchNorm on the joined batch.
#include "lockstep/parallel/sync_batch_norm.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>

#include <fstream>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

// libtorch's BatchNorm and ours, one after the other, in a tree of modules.
struct NetImpl : torch::nn::Module {
  torch::nn::Conv2d conv{nullptr};
  torch::nn::Sequential plain{nullptr};
  nn::BatchNorm2d fused{nullptr};
  torch::nn::BatchNorm1d last{nullptr};
  torch::nn::Dropout drop{nullptr};

  explicit NetImpl(double dropout = 0) {
    at::manual_seed(3);
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 5, 3).bias(false)));
    plain = register_module("plain", torch::nn::Sequential(torch::nn::BatchNorm2d(5)));
    fused = register_module("fused", nn::BatchNorm2d(5));
    last = register_module("last", torch::nn::BatchNorm1d(5));
    drop = register_module("drop", torch::nn::Dropout(dropout));
    for (auto& buffer : buffers()) {
      if (buffer.dim() == 1) buffer.add_(0.25);
    }
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = plain->forward(conv->forward(x));
    return last->forward(fused->forward(drop->forward(y), nn::Activation::kRelu, y).mean({2, 3}));
  }
};
TORCH_MODULE(Net);

Tensor images(int64_t count, bool channels_last = false) {
  at::manual_seed(9);
  const Tensor all = at::randn({count, 2, 7, 7}) * 3 + 1;
  return channels_last ? all.contiguous(at::MemoryFormat::ChannelsLast) : all;
}

// A loss whose gradient differs from sample to sample; its mean over samples is the joined batch's.
Tensor loss_of(Net& net, const Tensor& x, int64_t first) {
  const Tensor weights = at::arange(first, first + x.size(0), at::kFloat).add(1).unsqueeze(1);
  return (net->forward(x).square() * weights).mean();
}

struct Case {
  std::vector<int64_t> samples;  // by lane
  bool channels_last = false;
};

// One step of all lanes on these ranks, compared with one process on all samples.
void expect_joined(const std::shared_ptr<World>& world, const Case& given) {
  const auto lanes = static_cast<int>(given.samples.size());
  const int64_t total = std::accumulate(given.samples.begin(), given.samples.end(), int64_t{0});
  const Tensor all = images(total, given.channels_last);
  Net net, alone;
  convert_sync_batchnorm(*net, world->communicator());
  DistributedDataParallel ddp(net.ptr(), world);
  const auto own = world->own_lanes(lanes);
  StepPlan step{.number = 0, .samples = total, .lanes = {}};
  for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, given.samples[size_t(lane)]});
  const auto result = ddp.run(step, [&](size_t i) {
    const auto lane = size_t(step.lanes[i].index);
    const int64_t first = std::accumulate(given.samples.begin(), given.samples.begin() + int64_t(lane), int64_t{0});
    return loss_of(net, all.narrow(0, first, given.samples[lane]), first);
  });
  ddp.sync_buffers();
  const Tensor loss = loss_of(alone, all, 0);
  loss.backward();
  EXPECT_NEAR(result.loss, loss.item<double>(), 1e-6 * std::abs(loss.item<double>()));
  for (size_t i = 0; i < alone->parameters().size(); ++i) {
    const Tensor want = alone->parameters()[i].grad(), got = net->parameters()[i].grad();
    const double scale = std::max(1.0, want.abs().max().item<double>());
    EXPECT_LE((got - want).abs().max().item<double>(), 1e-5 * scale) << alone->named_parameters().keys()[i];
  }
  for (size_t i = 0; i < alone->buffers().size(); ++i) {
    EXPECT_TRUE(at::allclose(net->buffers()[i], alone->buffers()[i], 1e-6, 1e-6)) << alone->named_buffers().keys()[i];
  }
}

RANK_PROGRAM(joined) {
  const auto world = join_world(context);
  expect_joined(world, {.samples = {3, 3, 3, 3}});
  expect_joined(world, {.samples = {3, 3, 3, 3}, .channels_last = true});
  expect_joined(world, {.samples = {5, 2, 3, 4}});
  expect_joined(world, {.samples = {4, 3, 0, 0}});  // empty lanes, at 2 and 4 ranks empty ranks
  expect_joined(world, {.samples = {2, 0, 3, 0}});
}

TEST(SyncBatchNorm, EqualsBatchNormOnTheJoinedBatch) {
  for (const int size : {1, 2, 4}) expect_ranks_pass("joined", size);
}

// Argument: the file that rank 0 writes the bits to.
RANK_PROGRAM(trained) {
  const auto world = join_world(context);
  Net net(/*dropout=*/0.3);
  convert_sync_batchnorm(*net, world->communicator());
  DistributedDataParallel ddp(net.ptr(), world, {.seed = 4});
  const auto own = world->own_lanes(4);
  const Tensor all = images(4 * 3);
  for (int64_t t = 0; t < 3; ++t) {
    StepPlan step{.number = t, .samples = 12, .lanes = {}};
    for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, 3});
    ddp.run(step, [&](size_t i) {
      const int64_t first = 3 * step.lanes[i].index;
      return loss_of(net, all.narrow(0, first, 3), first);
    });
    const at::NoGradGuard no_grad;
    for (auto& parameter : net->parameters()) parameter.sub_(parameter.grad(), 0.01);
  }
  ddp.sync_buffers();
  EXPECT_EQ(net->fused->num_batches_tracked.item<int64_t>(), 3);
  EXPECT_EQ(net->last->num_batches_tracked.item<int64_t>(), 3);
  Sha256 hash;
  for (const auto& tensors : {net->parameters(), net->buffers()}) {
    for (const auto& tensor : tensors) hash.update(tensor.contiguous().data_ptr(), tensor.nbytes());
  }
  const std::string bits = hash.hex();
  if (context.rank == 0) std::ofstream(context.argument) << bits;
}

std::string bits_on(int ranks) {
  const std::string path = testing::TempDir() + "sync_batch_norm." + std::to_string(getpid());
  expect_ranks_pass("trained", ranks, path);
  std::string bits;
  std::ifstream(path) >> bits;
  unlink(path.c_str());
  EXPECT_EQ(bits.size(), 64u);
  return bits;
}

TEST(SyncBatchNorm, SameBitsOnAnyNumberOfRanks) {
  const std::string reference = bits_on(1);
  for (const int ranks : {2, 4}) EXPECT_EQ(bits_on(ranks), reference) << ranks << " ranks";
}

RANK_PROGRAM(by_hand) {
  const auto world = join_world(context);
  Net net, alone;
  convert_sync_batchnorm(*net, world->communicator());
  DistributedDataParallel ddp(net.ptr(), world);
  const Tensor all = images(4 * context.size);
  ddp.backward(loss_of(net, all.narrow(0, 4 * context.rank, 4), 4 * context.rank));
  loss_of(alone, all, 0).backward();
  EXPECT_TRUE(at::allclose(net->conv->weight.grad(), alone->conv->weight.grad(), 1e-4, 1e-5));
  net->eval();
  alone->eval();
  EXPECT_TRUE(at::allclose(net->forward(all), alone->forward(all), 1e-5, 1e-6)) << "evaluation reads the statistics";
}

TEST(SyncBatchNorm, ByHand) { expect_ranks_pass("by_hand", 3); }

RANK_PROGRAM(groups) {
  const auto world = join_world(context);
  const int first = context.rank / 2 * 2;
  nn::BatchNorm2d norm(5), alone(5);
  convert_sync_batchnorm(*norm, world->communicator(), {first, first + 1});
  EXPECT_EQ(find_sync_group(*norm)->ranks(), 2);
  const Tensor all = at::randn({8, 5, 3, 3}, at::make_generator<at::CPUGeneratorImpl>(7));
  const Tensor got = norm->forward(all.narrow(0, 2 * context.rank, 2));
  const Tensor want = alone->forward(all.narrow(0, 2 * first, 4)).narrow(0, 2 * (context.rank - first), 2);
  EXPECT_TRUE(at::allclose(got, want, 1e-6, 1e-6));
}

TEST(SyncBatchNorm, WithinProcessGroups) { expect_ranks_pass("groups", 4); }

RANK_PROGRAM(refusals) {
  const auto world = join_world(context);
  Net net;
  convert_sync_batchnorm(*net->fused, world->communicator());
  convert_sync_batchnorm(*net->last, world->communicator());
  EXPECT_THROW(DistributedDataParallel(net.ptr(), world), ConfigError) << "converted one by one";
  Net whole;
  convert_sync_batchnorm(*whole, world->communicator());
  DistributedDataParallel ddp(whole.ptr(), world);
  EXPECT_THROW(ddp.join([] {}), ConfigError);
}

TEST(SyncBatchNorm, RefusesWhatWouldHang) { expect_ranks_pass("refusals", 2); }

RANK_PROGRAM(another_way) {
  const auto world = join_world(context);
  Net net;
  convert_sync_batchnorm(*net, world->communicator());
  DistributedDataParallel ddp(net.ptr(), world, {.find_unused_parameters = true});
  StepPlan step{.number = 0, .samples = 8, .lanes = {{0, 4}, {1, 4}}};
  try {
    ddp.run(step, [&](size_t i) {
      const Tensor x = images(4);
      return i == 0 ? net->forward(x).mean() : net->plain->forward(net->conv->forward(x)).mean();
    });
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("do not use the same SyncBatchNorm layers"));
  }
}

TEST(SyncBatchNorm, LanesThatGoAnotherWayAreNoticed) { expect_ranks_pass("another_way", 1); }

}  // namespace
}  // namespace lockstep::parallel
