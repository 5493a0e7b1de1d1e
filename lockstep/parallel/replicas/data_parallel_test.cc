#include "lockstep/parallel/replicas/data_parallel.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/error.h"
#include "lockstep/nn/batch_norm.h"
#include "lockstep/nn/checkpoint.h"

namespace lockstep::parallel {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  explicit NetImpl(double dropout = 0) : rate(dropout) { NetImpl::reset(); }
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(1, 6, 3));
    norm = register_module("norm", torch::nn::BatchNorm2d(6));
    own_norm = register_module("own_norm", nn::BatchNorm2d(6));
    drop = register_module("drop", torch::nn::Dropout(rate));
    linear = register_module("linear", torch::nn::Linear(6 * 36, 5));
    unused = register_module("unused", torch::nn::Linear(2, 2));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden = own_norm->forward(at::relu(norm->forward(conv->forward(x))));
    return linear->forward(drop->forward(hidden.flatten(1)));
  }
  double rate;
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  nn::BatchNorm2d own_norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Linear linear{nullptr}, unused{nullptr};
};

std::shared_ptr<NetImpl> net_of(double dropout = 0) {
  at::manual_seed(5);
  return std::make_shared<NetImpl>(dropout);
}
at::Tensor images(int64_t samples = 8) {
  at::manual_seed(11);
  return at::rand({samples, 1, 8, 8});
}
at::Tensor labels(int64_t samples = 8) { return at::arange(samples).remainder(5); }

std::map<std::string, at::Tensor> gradients_of(const torch::nn::Module& net) {
  std::map<std::string, at::Tensor> all;
  for (const auto& parameter : net.named_parameters()) all[parameter.key()] = parameter.value().grad();
  return all;
}

void expect_close(const torch::nn::Module& a, const torch::nn::Module& b, double within = 1e-5) {
  const auto of_a = gradients_of(a), of_b = gradients_of(b);
  for (const auto& [name, gradient] : of_a) {
    ASSERT_EQ(gradient.defined(), of_b.at(name).defined()) << name;
    if (gradient.defined()) EXPECT_LT((gradient - of_b.at(name)).abs().max().item<double>(), within) << name;
  }
}

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

// One weight under two names, which the copies by clone() have as two.
TEST(DataParallel, TiedWeightsHaveOneGradient) {
  struct TiedImpl : torch::nn::Cloneable<TiedImpl> {
    explicit TiedImpl(bool share) : keep(share) { TiedImpl::reset(); }
    void reset() override {
      first = register_module("first", torch::nn::Linear(4, 4));
      second = register_module("second", keep ? first : torch::nn::Linear(4, 4));
    }
    at::Tensor forward(const at::Tensor& x) { return second->forward(at::relu(first->forward(x))); }
    bool keep;
    torch::nn::Linear first{nullptr}, second{nullptr};
  };
  for (const bool copies_share : {true, false}) {
    at::manual_seed(2);
    auto alone = std::make_shared<TiedImpl>(true);
    at::manual_seed(2);
    auto net = std::make_shared<TiedImpl>(true);
    const auto make = [&](const at::Device&) { return std::make_shared<TiedImpl>(copies_share); };
    DataParallel<TiedImpl> parallel(net, make, {.device_ids = on_cpu(2)});
    const at::Tensor x = at::rand({6, 4});
    alone->forward(x).square().sum().backward();
    parallel(x).square().sum().backward();
    expect_close(*net, *alone);
  }
}

// Autograd gives both parameters one tensor, and with one sample a replica views of the incoming gradient.
TEST(DataParallel, GradientsThatShareMemoryAreAddedOnce) {
  struct SharedImpl : torch::nn::Cloneable<SharedImpl> {
    SharedImpl() { SharedImpl::reset(); }
    void reset() override {
      a = register_parameter("a", at::zeros({3}));
      b = register_parameter("b", at::zeros({3}));
    }
    at::Tensor forward(const at::Tensor& x) { return x + (a + b); }
    at::Tensor a, b;
  };
  for (const size_t replicas : {1U, 2U, 4U}) {
    auto net = std::make_shared<SharedImpl>();
    DataParallel<SharedImpl> parallel(net, {.device_ids = on_cpu(replicas)});
    const at::Tensor x = at::rand({4, 3}).requires_grad_(true), weight = at::arange(12, at::kFloat).view({4, 3});
    (parallel(x) * weight).sum().backward();
    EXPECT_TRUE(net->a.grad().equal(weight.sum(0)));
    EXPECT_TRUE(net->b.grad().equal(weight.sum(0)));
    EXPECT_TRUE(x.grad().equal(weight));
  }
}

// The order of a GAN's discriminator: trained by one batch, frozen for another, one backward.
TEST(DataParallel, EachForwardKeepsWhatItTrainedAndHow) {
  std::vector<at::Tensor> gradients;
  for (const bool wrapped : {false, true}) {
    auto net = net_of();
    net->eval();
    DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(2)});
    const auto forward = [&](const at::Tensor& x) { return wrapped ? parallel(x) : net->forward(x); };
    const at::Tensor first = forward(images());
    for (auto& parameter : net->parameters()) parameter.requires_grad_(false);
    const at::Tensor second = forward(images().requires_grad_(true));
    for (auto& parameter : net->parameters()) parameter.requires_grad_(true);
    (first.sum() + second.sum()).backward();
    gradients.push_back(net->linear->weight.grad());
  }
  EXPECT_LT((gradients[0] - gradients[1]).abs().max().item<double>(), 1e-5);
}

TEST(DataParallel, LateChangesAndFrozenWeightsAreTheNetworks) {
  auto net = net_of();
  DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(2)});
  net->conv->weight.requires_grad_(false);
  net->eval();
  {
    const c10::AutoGradMode no_grad(false);
    net->linear->bias.fill_(2);
    net->norm->running_mean.fill_(0.25);
  }
  net->linear->weight.set_data(at::zeros_like(net->linear->weight));
  const at::Tensor output = parallel(images());
  EXPECT_TRUE(output.detach().equal(at::full({8, 5}, 2.0)));
  output.sum().backward();
  EXPECT_FALSE(net->conv->weight.grad().defined());
  EXPECT_TRUE(net->linear->bias.grad().equal(at::full({5}, 8.0)));
  std::vector<std::string> names;
  for (const auto& parameter : parallel.named_parameters()) names.push_back(parameter.key());
  EXPECT_EQ(names.front(), "module.conv.weight");
}

TEST(DataParallel, AClassWithoutCloneIsMade) {
  struct PlainImpl : torch::nn::Module {
    PlainImpl() { linear = register_module("linear", torch::nn::Linear(4, 3)); }
    Tensors forward(const at::Tensor& x) { return {linear->forward(x), x}; }
    torch::nn::Linear linear{nullptr};
  };
  auto net = std::make_shared<PlainImpl>();
  EXPECT_THROW((DataParallel<PlainImpl>(net, {.device_ids = on_cpu(2)})), std::exception);
  DataParallel<PlainImpl> parallel(net, [](const at::Device&) { return std::make_shared<PlainImpl>(); },
                                   {.device_ids = on_cpu(2)});
  const at::Tensor x = at::rand({5, 4});
  const Tensors found = parallel(x);
  EXPECT_LT((found[0] - net->forward(x)[0]).abs().max().item<double>(), 1e-6);
  EXPECT_TRUE(found[1].equal(x));
}

TEST(DataParallel, GraphsEndWithTheirBackward) {
  auto net = net_of();
  DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(2)});
  const at::Tensor loss = parallel(images()).sum();
  loss.backward({}, /*keep_graph=*/true);
  const at::Tensor once = net->linear->weight.grad().clone();
  loss.backward();
  EXPECT_LT((net->linear->weight.grad() - 2 * once).abs().max().item<double>(), 1e-4);
  const c10::AutoGradMode no_grad(false);
  EXPECT_FALSE(parallel(images()).requires_grad());
}

TEST(DataParallel, ARecomputedPartIsTheSame) {
  struct AgainImpl : torch::nn::Cloneable<AgainImpl> {
    explicit AgainImpl(bool recompute) : again(recompute) { reset(); }
    void reset() override { linear = register_module("linear", torch::nn::Linear(6, 6)); }
    at::Tensor forward(const at::Tensor& x) {
      const auto part = [this](const at::Tensor& each) { return at::dropout(linear->forward(each), 0.5, true); };
      return again ? nn::checkpoint(part, x) : part(x);
    }
    bool again;
    torch::nn::Linear linear{nullptr};
  };
  std::vector<at::Tensor> gradients;
  for (const bool recompute : {false, true}) {
    at::manual_seed(3);
    auto net = std::make_shared<AgainImpl>(recompute);
    DataParallel<AgainImpl> parallel(net, {.device_ids = on_cpu(3)});
    const at::Tensor x = at::rand({9, 6});
    parallel(x).square().sum().backward();
    gradients.push_back(net->linear->weight.grad());
  }
  EXPECT_TRUE(gradients[0].equal(gradients[1]));
}

template <typename Error>
std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(DataParallel, WhatCanNotBeRightIsNamed) {
  auto net = net_of();
  DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(2)});
  const auto config = [](const std::function<void()>& call) { return text_of<ConfigError>(call); };
  EXPECT_THAT(config([&] { parallel(at::rand({0, 1, 8, 8})); }), HasSubstr("a batch of no samples"));
  EXPECT_THAT(config([&] { parallel(at::rand({})); }), HasSubstr("has no dimension 0"));
  EXPECT_THAT(config([&] {
                const at::Tensor loss = parallel(images()).sum();
                const c10::AutoGradMode no_grad(false);
                net->linear->bias.add_(1);
                const c10::AutoGradMode with_grad(true);
                loss.backward();
              }),
              HasSubstr("was changed between a forward and its backward"));
  EXPECT_THAT(config([&] {
                const at::Tensor loss = parallel(images()).sum();
                torch::autograd::grad({loss}, {net->linear->weight}, {}, true, /*create_graph=*/true);
              }),
              HasSubstr("create_graph"));
  EXPECT_THAT(text_of<std::exception>([&] { parallel(at::rand({4, 2, 8, 8})); }), HasSubstr("replica 0"));
  EXPECT_THAT(config([&] {
                DataParallel<NetImpl> other(net, [](const at::Device&) { return std::make_shared<NetImpl>(); },
                                            {.device_ids = {at::Device(at::kMeta)}});
              }),
              HasSubstr("is on cpu and its first replica is to be on meta"));
  const auto same = [net](const at::Device&) { return net; };
  EXPECT_THAT(config([&] { DataParallel<NetImpl>(net, same, {.device_ids = on_cpu(2)}); }),
              HasSubstr("no network of its own"));
}

TEST(DataParallel, TensorsThatWouldGetNoGradientAreNamed) {
  struct OddImpl : torch::nn::Cloneable<OddImpl> {
    OddImpl() { OddImpl::reset(); }
    void reset() override { linear = register_module("linear", torch::nn::Linear(4, 4)); }
    at::Tensor forward(const at::Tensor& x, const Tensors& more) { return linear->forward(x) + more[0]; }
    torch::nn::Linear linear{nullptr};
  };
  auto net = std::make_shared<OddImpl>();
  DataParallel<OddImpl> parallel(net, {.device_ids = on_cpu(2)});
  EXPECT_EQ(parallel(at::rand({2, 4}), Tensors{at::rand({4})}).size(0), 2);
  EXPECT_THAT(text_of<ConfigError>([&] {
                parallel(at::rand({2, 4}), Tensors{at::rand({4}).requires_grad_(true)});
              }),
              HasSubstr("the outputs depend on a tensor [4] that requires a gradient"));
  net->linear = net->replace_module("linear", torch::nn::Linear(4, 4));
  EXPECT_THAT(text_of<ConfigError>([&] {
                parallel(at::rand({2, 4}), Tensors{at::rand({4})});
              }),
              HasSubstr("has other parameters or buffers than when it was wrapped"));
}

// A forward's recomputation is in the modes of that forward.
TEST(DataParallel, AnEvaluationInBetweenChangesNothing) {
  struct AgainImpl : torch::nn::Cloneable<AgainImpl> {
    AgainImpl() { AgainImpl::reset(); }
    void reset() override { linear = register_module("linear", torch::nn::Linear(6, 6)); }
    at::Tensor forward(const at::Tensor& x) {
      const auto part = [this](const at::Tensor& each) {
        return at::dropout(linear->forward(each), 0.5, linear->is_training());
      };
      return nn::checkpoint(part, x);
    }
    torch::nn::Linear linear{nullptr};
  };
  std::vector<at::Tensor> gradients;
  for (const bool evaluates : {false, true}) {
    at::manual_seed(3);
    auto net = std::make_shared<AgainImpl>();
    DataParallel<AgainImpl> parallel(net, {.device_ids = on_cpu(2)});
    const at::Tensor x = at::rand({8, 6}), output = parallel(x);
    if (evaluates) {
      const c10::AutoGradMode no_grad(false);
      parallel.eval();
      parallel(x);
      parallel.train();
    }
    output.square().sum().backward();
    gradients.push_back(net->linear->weight.grad());
  }
  EXPECT_TRUE(gradients[0].equal(gradients[1]));
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
        text_of<std::exception>([&] { parallel(x); }),
        kind == 1 ? HasSubstr("replica 2: a bad sample") : HasSubstr("do not use the same SyncBatchNorm layers"));
  }
  x[4].fill_(0);
  EXPECT_EQ(parallel(x).size(0), 8);
}

}  // namespace
}  // namespace lockstep::parallel
