#include "lockstep/parallel/distributed_data_parallel.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/optim/held_gradient.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::Ranks;

// Convolution, BatchNorm, dropout and a cat, whose gradient is a view.
struct NetImpl : torch::nn::Module {
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear fc{nullptr};
  torch::nn::Dropout drop{nullptr};
  Tensor first, second;

  explicit NetImpl(uint64_t seed = 1, double dropout = 0) {
    at::manual_seed(seed);
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3)));
    norm = register_module("norm", torch::nn::BatchNorm2d(4));
    fc = register_module("fc", torch::nn::Linear(4 * 6 * 6 + 10, 5));
    drop = register_module("drop", torch::nn::Dropout(dropout));
    first = register_parameter("first", at::randn({4}));
    second = register_parameter("second", at::randn({6}));
  }
  Tensor forward(const Tensor& x, bool use_norm = true) {
    Tensor y = conv->forward(x);
    y = at::relu(use_norm ? norm->forward(y) : y).flatten(1);
    const Tensor both = at::cat({first, second}).expand({x.size(0), 10});
    return fc->forward(drop->forward(at::cat({y, both}, 1)));
  }
};
TORCH_MODULE(Net);

struct Data {
  Tensor images, labels;
  Data() {
    at::manual_seed(77);
    images = at::randn({64, 1, 8, 8});
    labels = at::randint(0, 5, {64});
  }
  // Lane `lane` of `lanes` in a global batch of `samples`.
  Tensor loss(NetImpl& net, int lane, int64_t per_lane, bool use_norm = true) const {
    return at::cross_entropy_loss(net.forward(images.narrow(0, lane * per_lane, per_lane), use_norm),
                                  labels.narrow(0, lane * per_lane, per_lane));
  }
};

StepPlan plan(const World& world, int lanes, int64_t per_lane, int64_t number = 0) {
  StepPlan step{.number = number, .samples = lanes * per_lane, .lanes = {}};
  const int own = lanes / world.size();
  for (int i = 0; i < own; ++i) step.lanes.push_back({world.rank() * own + i, per_lane});
  return step;
}

std::string hash_of(const torch::nn::Module& module) {
  Sha256 hash;
  const auto add = [&](const Tensor& t) {
    const Tensor dense = t.detach().contiguous();
    hash.update(dense.data_ptr(), dense.nbytes());
  };
  for (const auto& parameter : module.parameters()) {
    add(parameter);
    if (parameter.grad().defined()) add(parameter.grad());
  }
  for (const auto& buffer : module.buffers()) add(buffer);
  return hash.hex();
}

RANK_PROGRAM(unused_parameters) {
  const auto world = join_world(context);
  Net net(1);
  const Data data;
  DistributedDataParallel ddp(net.ptr(), world, {});
  ddp.run(plan(*world, context.size, 8), [&](size_t) { return data.loss(*net, context.rank, 8, false); });
}

TEST(DistributedDataParallel, AnUnusedParameterIsNamedOnEveryRank) {
  for (const auto& result : Ranks("unused_parameters", 2).wait()) {
    EXPECT_TRUE(result.exit_code == 2 || result.exit_code == 69) << result.exit_code;
    EXPECT_THAT(result.output, HasSubstr("no gradient for norm.weight, norm.bias"));
  }
}

RANK_PROGRAM(joined_batch) {
  const auto world = join_world(context);
  const Data data;
  const auto frozen = [](uint64_t seed) {
    Net net(seed);
    for (auto& parameter : net->norm->parameters()) parameter.requires_grad_(false);
    return net;
  };
  Net net = frozen(1 + static_cast<uint64_t>(context.rank));
  DistributedDataParallel ddp(net.ptr(), world, {});
  const auto result =
      ddp.run(plan(*world, context.size, 8), [&](size_t) { return data.loss(*net, context.rank, 8, false); });
  Net alone = frozen(1);
  const Tensor loss = data.loss(*alone, 0, 8 * context.size, false);
  loss.backward();
  EXPECT_NEAR(result.loss, loss.item<double>(), 1e-6);
  double squares = 0;
  for (size_t i = 0; i < alone->parameters().size(); ++i) {
    const Tensor expected = alone->parameters()[i].grad(), got = net->parameters()[i].grad();
    if (!expected.defined()) continue;
    EXPECT_TRUE(at::allclose(got, expected, 1e-4, 1e-6)) << alone->named_parameters().keys()[i];
    squares += got.to(at::kDouble).square().sum().item<double>();
  }
  EXPECT_NEAR(result.square_sum, squares, 1e-9 * squares);
}

TEST(DistributedDataParallel, EqualsOneProcessOnTheJoinedBatch) {
  for (const int size : {1, 2, 4}) expect_ranks_pass("joined_batch", size);
}

// A few steps with dropout and BatchNorm; argument: the file that rank 0 writes the state's hash to.
RANK_PROGRAM(trains) {
  const auto world = join_world(context);
  Net net(5, 0.3);
  const Data data;
  DistributedDataParallel ddp(net.ptr(), world,
                              {.buckets = {.bucket_mb = 0.001, .first_bucket_mb = 0.0001}, .seed = 9});
  EXPECT_GE(ddp.reducer().buckets(), 2u);
  double loss = 0;
  for (int t = 0; t < 3; ++t) {
    const StepPlan step = plan(*world, 8, 4, t);
    const auto result = ddp.run(
        step, [&](size_t i) { return data.loss(*net, step.lanes[i].index, 4); }, 128);
    loss = result.loss;
    const at::NoGradGuard no_grad;
    const optim::UseHeldGradients use;  // the scale is taken out here
    for (auto& parameter : net->parameters()) parameter.sub_(parameter.grad(), 0.1 / 128);
  }
  ddp.sync_buffers();
  const optim::UseHeldGradients use;
  const auto hashes = hash_of(*net);
  if (context.rank == 0) std::ofstream(context.argument) << std::hexfloat << loss << ' ' << hashes;
}

std::string trained_on(int ranks) {
  const std::string path = testing::TempDir() + "ddp_state." + std::to_string(getpid());
  expect_ranks_pass("trains", ranks, path);
  std::ifstream file(path);
  std::string loss, hash;
  file >> loss >> hash;
  unlink(path.c_str());
  EXPECT_EQ(hash.size(), 64u);
  return loss + ' ' + hash;
}

TEST(DistributedDataParallel, SameBitsOnAnyNumberOfRanks) {
  const std::string reference = trained_on(1);
  for (const int ranks : {2, 4, 8}) EXPECT_EQ(trained_on(ranks), reference) << ranks << " ranks";
}

RANK_PROGRAM(ragged) {
  const auto world = join_world(context);
  Net net(1);
  const Data data;
  DistributedDataParallel ddp(net.ptr(), world, {});
  // 3 + 2 samples over the first two ranks; the others' lanes are empty.
  StepPlan step{.number = 0, .samples = 5, .lanes = {}};
  const std::vector<int64_t> samples = {3, 2, 0, 0};
  step.lanes.push_back({context.rank, samples[static_cast<size_t>(context.rank)]});
  net->norm->eval();
  const auto lane = [&](Net& model, int64_t first, int64_t count) {
    return at::cross_entropy_loss(model->forward(data.images.narrow(0, first, count)),
                                  data.labels.narrow(0, first, count));
  };
  const auto result = ddp.run(step, [&](size_t) { return lane(net, context.rank * 3, step.lanes[0].samples); });
  Net alone(1);
  alone->norm->eval();
  const Tensor loss = lane(alone, 0, 5);
  loss.backward();
  EXPECT_NEAR(result.loss, loss.item<double>(), 1e-6);
  EXPECT_TRUE(at::allclose(net->conv->weight.grad(), alone->conv->weight.grad(), 1e-4, 1e-6));
}

TEST(DistributedDataParallel, ARaggedBatchIsWeightedBySamples) { expect_ranks_pass("ragged", 4); }

RANK_PROGRAM(by_hand) {
  const auto world = join_world(context);
  Net net(1);
  const Data data;
  DistributedDataParallel ddp(net.ptr(), world, {});
  net->norm->eval();
  Tensor loss;
  {
    const auto scope = ddp.no_sync();
    ddp.backward(data.loss(*net, 2 * context.rank, 8));
    EXPECT_TRUE(net->conv->weight.grad().defined()) << "this rank's own";
  }
  ddp.backward(data.loss(*net, 2 * context.rank + 1, 8));
  Net alone(1);
  alone->norm->eval();
  (data.loss(*alone, 0, 8 * 2 * context.size) * 2).backward();  // two backward passes add up, ranks are averaged
  EXPECT_TRUE(at::allclose(net->conv->weight.grad(), alone->conv->weight.grad(), 1e-4, 1e-6));
  EXPECT_TRUE(at::allclose(net->second.grad(), alone->second.grad(), 1e-4, 1e-6));
}

TEST(DistributedDataParallel, ByHandWithNoSync) { expect_ranks_pass("by_hand", 2); }

RANK_PROGRAM(another_model) {
  const auto world = join_world(context);
  auto net = context.rank == 2 ? torch::nn::Linear(3, 5) : torch::nn::Linear(3, 4);
  try {
    DistributedDataParallel ddp(net.ptr(), world, {});
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("rank 2 has parameter weight [5, 3] float where rank 0 has parameter weight [4, 3] float"));
  }
}

TEST(DistributedDataParallel, AnotherModelIsNamedWithItsRank) { expect_ranks_pass("another_model", 3); }

RANK_PROGRAM(loss_throws) {
  const auto world = join_world(context);
  Net net(1);
  const Data data;
  DistributedDataParallel ddp(net.ptr(), world, {});
  const auto loss_of = [&](size_t) -> Tensor {
    if (context.rank == 1) throw DataError("images/7.png: damaged");
    return data.loss(*net, context.rank, 8);
  };
  try {
    ddp.run(plan(*world, context.size, 8), loss_of);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("images/7.png: damaged"));
    EXPECT_EQ(error.exit_code(), context.rank == 1 ? 65 : 69);
  }
}

TEST(DistributedDataParallel, AnErrorInOneLaneReachesAllRanks) { expect_ranks_pass("loss_throws", 3); }

RANK_PROGRAM(decision) {
  const auto world = join_world(context);
  Net net(1);
  const Data data;
  DistributedDataParallel ddp(net.ptr(), world, {});
  const auto loss_of = [&](size_t) { return data.loss(*net, context.rank, 8); };
  EXPECT_EQ(ddp.run(plan(*world, context.size, 8), loss_of, 1, context.rank == 0 ? 3 : 7).decision, 3);
}

TEST(DistributedDataParallel, RankZerosDecisionTravelsWithTheFold) { expect_ranks_pass("decision", 3); }

RANK_PROGRAM(nan_loss) {
  const auto world = join_world(context);
  Net net(1);
  const Data data;
  DistributedDataParallel ddp(net.ptr(), world, {});
  const auto result = ddp.run(plan(*world, context.size, 8), [&](size_t) {
    return data.loss(*net, context.rank, 8) * (context.rank == 0 ? -std::nan("") : 1);
  });
  EXPECT_EQ(cat(result.loss), "nan") << "and not -nan";
}

TEST(DistributedDataParallel, ALossThatIsNoNumberHasNoSign) {
  for (const int size : {1, 2}) expect_ranks_pass("nan_loss", size);
}

RANK_PROGRAM(lanes_missing) {
  const auto world = join_world(context);
  Net net(1);
  const Data data;
  DistributedDataParallel ddp(net.ptr(), world, {});
  StepPlan step = plan(*world, context.size, 8);
  step.samples *= 2;
  try {
    ddp.run(step, [&](size_t) { return data.loss(*net, context.rank, 8); });
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the lanes of all ranks hold 16 samples, the global batch 32"));
  }
}

RANK_PROGRAM(losses_are_read_last) {
  static int reads = 0;
  const auto callback = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
        reads += std::string(call.name()) == "aten::_local_scalar_dense" ? 1 : 0;
        return nullptr;
      }));
  const auto world = join_world(context);
  Net net(1);
  const Data data;
  DistributedDataParallel ddp(net.ptr(), world, {});
  int before = 0, before_the_last = 0;
  ddp.run(plan(*world, 4, 8), [&](size_t lane) {
    if (lane == 0) before = reads;
    if (lane == 3) before_the_last = reads;
    return data.loss(*net, static_cast<int>(lane), 8);
  });
  EXPECT_EQ(before_the_last, before);
  EXPECT_GE(reads, before + 4) << "reading is seen";
  at::removeCallback(callback);
}

// On a GPU reading a loss waits until all is computed.
TEST(DistributedDataParallel, LossesAreReadAfterTheLastLane) { expect_ranks_pass("losses_are_read_last", 1); }

TEST(DistributedDataParallel, LanesThatNobodyOwnsAreNoticed) { expect_ranks_pass("lanes_missing", 2); }

}  // namespace
}  // namespace lockstep::parallel
