#include "lockstep/parallel/replicas/data_parallel.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/parallel/replicas/testing/nets.h"

namespace lockstep::parallel {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;
using testing_support::refusal;

// What one step leaves in .grad, with BatchNorm by its running statistics, so that samples do not depend on others.
TEST(DataParallel, GradientsAreThoseOfTheNetworkAlone) {
  for (const size_t replicas : {1U, 2U, 3U, 8U}) {
    for (const int64_t samples : {8, 5, 1}) {
      auto alone = net_of(), net = net_of();
      alone->eval();
      DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(replicas)});
      parallel.eval();
      const at::Tensor expected = at::cross_entropy_loss(alone->forward(images(samples)), labels(samples));
      expected.backward();
      const at::Tensor loss = at::cross_entropy_loss(parallel(images(samples)), labels(samples));
      loss.backward();
      EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-6);
      expect_close(*net, *alone);
      EXPECT_FALSE(net->unused->weight.grad().defined());
    }
  }
}

TEST(DataParallel, BatchNormIsEachReplicasOwnAndTheFirstOneKeepsIt) {
  auto first = net_of(), net = net_of();
  DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(2)});
  first->forward(images().narrow(0, 0, 4));
  parallel.forward(images());
  EXPECT_TRUE(net->norm->running_mean.equal(first->norm->running_mean));
  EXPECT_TRUE(net->own_norm->running_var.equal(first->own_norm->running_var));
  EXPECT_EQ(net->norm->num_batches_tracked.item<int64_t>(), 1);
}

TEST(DataParallel, SyncBatchNormIsThatOfTheWholeBatch) {
  for (const size_t replicas : {2U, 4U, 8U}) {
    auto whole = net_of(), net = net_of();
    DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(replicas), .sync_batch_norm = true});
    for (int step = 0; step < 3; ++step) {
      at::cross_entropy_loss(whole->forward(images(10)), labels(10)).backward();
      at::cross_entropy_loss(parallel(images(10)), labels(10)).backward();
    }
    expect_close(*net, *whole, 1e-4);
    EXPECT_LT((net->norm->running_var - whole->norm->running_var).abs().max().item<double>(), 1e-6);
    EXPECT_LT((net->own_norm->running_mean - whole->own_norm->running_mean).abs().max().item<double>(), 1e-6);
    EXPECT_EQ(net->norm->num_batches_tracked.item<int64_t>(), 3);
  }
}

TEST(DataParallel, AStepRepeatsItsBitsWithDropout) {
  std::vector<at::Tensor> ends;
  for (int run = 0; run < 4; ++run) {
    auto net = net_of(0.5);
    DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(4)});
    torch::optim::SGD sgd(net->parameters(), 0.1);
    const at::Tensor x = images(12);
    at::manual_seed(1);
    for (int step = 0; step < 10; ++step) {
      sgd.zero_grad();
      at::cross_entropy_loss(parallel(x), labels(12)).backward();
      sgd.step();
    }
    ends.push_back(net->linear->weight.detach().clone());
    EXPECT_TRUE(ends.back().equal(ends.front())) << run;
  }
  const at::Tensor first = net_of(0.5)->linear->weight;
  EXPECT_FALSE(first.equal(ends.front()));
}

TEST(DataParallel, ReplicasDrawOtherNumbersInEachStep) {
  struct NoiseImpl : torch::nn::Cloneable<NoiseImpl> {
    void reset() override {}
    at::Tensor forward(const at::Tensor& x) { return at::dropout(x, 0.5, true); }
  };
  DataParallel<NoiseImpl> parallel(std::make_shared<NoiseImpl>(), {.device_ids = on_cpu(2)});
  const at::Tensor one = parallel(at::ones({2, 64})), two = parallel(at::ones({2, 64}));
  EXPECT_FALSE(one[0].equal(one[1]));
  EXPECT_FALSE(one.equal(two));
}

TEST(DataParallel, InputsHaveGradientsAndWhatIsNoTensorGoesToAll) {
  struct ScaleImpl : torch::nn::Cloneable<ScaleImpl> {
    void reset() override { scale = register_parameter("scale", at::full({}, 3.0)); }
    ScaleImpl() { reset(); }
    std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& a, double factor, const at::Tensor& b) {
      return {a * factor * scale, b.sum()};
    }
    at::Tensor scale;
  };
  auto net = std::make_shared<ScaleImpl>();
  DataParallel<ScaleImpl> parallel(net, {.device_ids = on_cpu(3)});
  const at::Tensor a = at::arange(6, at::kFloat).view({6, 1}).requires_grad_(true), b = at::ones({6, 2});
  const auto [scaled, sums] = parallel(a, 2.0, b);
  EXPECT_TRUE(scaled.detach().equal(a.detach() * 6));
  EXPECT_TRUE(sums.equal(at::full({3}, 4.0)));  // scalars are stacked
  scaled.sum().backward();
  EXPECT_TRUE(a.grad().equal(at::full({6, 1}, 6.0)));
  EXPECT_EQ(net->scale.grad().item<double>(), 30);
}

TEST(DataParallel, AClassWithoutCloneIsMade) {
  struct PlainImpl : torch::nn::Module {
    PlainImpl() { linear = register_module("linear", torch::nn::Linear(4, 3)); }
    Tensors forward(const at::Tensor& x) { return {linear->forward(x), x}; }
    torch::nn::Linear linear{nullptr};
  };
  auto net = std::make_shared<PlainImpl>();
  EXPECT_THAT(refusal([&] { DataParallel<PlainImpl>(net, {.device_ids = on_cpu(2)}); }),
              HasSubstr("give DataParallel a function that makes another one"));
  DataParallel<PlainImpl> parallel(net, [](const at::Device&) { return std::make_shared<PlainImpl>(); },
                                   {.device_ids = on_cpu(2)});
  const at::Tensor x = at::rand({5, 4});
  const Tensors found = parallel(x);
  EXPECT_LT((found[0] - net->forward(x)[0]).abs().max().item<double>(), 1e-6);
  EXPECT_TRUE(found[1].equal(x));
}

TEST(DataParallel, WhatCanNotBeRightIsNamed) {
  auto net = net_of();
  DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(2)});
  EXPECT_THAT(refusal([&] { parallel(at::rand({0, 1, 8, 8})); }), HasSubstr("a batch of no samples"));
  EXPECT_THAT(refusal([&] { parallel(at::rand({})); }), HasSubstr("has no dimension 0"));
  EXPECT_THAT(refusal([&] {
                const at::Tensor loss = parallel(images()).sum();
                const c10::AutoGradMode no_grad(false);
                net->linear->bias.add_(1);
                const c10::AutoGradMode with_grad(true);
                loss.backward();
              }),
              HasSubstr("was changed between a forward and its backward"));
  EXPECT_THAT(refusal([&] {
                const at::Tensor loss = parallel(images()).sum();
                torch::autograd::grad({loss}, {net->linear->weight}, {}, true, /*create_graph=*/true);
              }),
              HasSubstr("create_graph"));
  EXPECT_THAT(refusal<std::exception>([&] { parallel(at::rand({4, 2, 8, 8})); }), HasSubstr("replica 0"));
  EXPECT_THAT(refusal([&] {
                DataParallel<NetImpl> other(net, [](const at::Device&) { return std::make_shared<NetImpl>(); },
                                            {.device_ids = {at::Device(at::kMeta)}});
              }),
              HasSubstr("is on cpu and its first replica is to be on meta"));
  const auto same = [net](const at::Device&) { return net; };
  EXPECT_THAT(refusal([&] { DataParallel<NetImpl>(net, same, {.device_ids = on_cpu(2)}); }),
              HasSubstr("no network of its own"));
}

TEST(DataParallel, ReplicasThatFailDoNotKeepOthersWaiting) {
  struct OddImpl : torch::nn::Cloneable<OddImpl> {
    OddImpl() { OddImpl::reset(); }
    void reset() override { norm = register_module("norm", torch::nn::BatchNorm1d(4)); }
    at::Tensor forward(const at::Tensor& x) {
      const double first = x[0][0].item<double>();
      if (first == 1) throw std::runtime_error("a bad sample");
      return first == 2 ? x : norm->forward(x);
    }
    torch::nn::BatchNorm1d norm{nullptr};
  };
  DataParallel<OddImpl> parallel(std::make_shared<OddImpl>(), {.device_ids = on_cpu(4), .sync_batch_norm = true});
  at::Tensor x = at::zeros({8, 4});
  for (const double kind : {1.0, 2.0}) {
    x[4].fill_(kind);
    EXPECT_THAT(
        refusal<std::exception>([&] { parallel(x); }),
        kind == 1 ? HasSubstr("replica 2: a bad sample") : HasSubstr("do not use the same SyncBatchNorm layers"));
  }
  x[4].fill_(0);
  EXPECT_EQ(parallel(x).size(0), 8);
}

}  // namespace
}  // namespace lockstep::parallel
