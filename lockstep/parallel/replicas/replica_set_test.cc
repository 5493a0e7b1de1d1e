#include "lockstep/parallel/replicas/replica_set.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/nn/checkpoint.h"
#include "lockstep/parallel/replicas/data_parallel.h"
#include "lockstep/parallel/replicas/testing/nets.h"

namespace lockstep::parallel {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;
using testing_support::refusal;

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

// A copy would compute with another weight.
TEST(DataParallel, AWeightThatIsTiedByAMemberIsRefused) {
  struct ByMemberImpl : torch::nn::Cloneable<ByMemberImpl> {
    ByMemberImpl() { ByMemberImpl::reset(); }
    void reset() override {
      first = register_module("first", torch::nn::Linear(4, 4));
      second = register_module("second", torch::nn::Linear(4, 4));
      second->weight = first->weight;
    }
    at::Tensor forward(const at::Tensor& x) { return second->forward(first->forward(x)); }
    torch::nn::Linear first{nullptr}, second{nullptr};
  };
  EXPECT_THAT(refusal([] { DataParallel<ByMemberImpl>(std::make_shared<ByMemberImpl>(), {.device_ids = on_cpu(2)}); }),
              testing::HasSubstr("second.weight of "));
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

// A recomputation around a whole forward, on the caller's thread.
TEST(DataParallel, ARecomputationCountsABatchOnce) {
  std::vector<std::shared_ptr<NetImpl>> nets;
  for (const bool again : {false, true}) {
    nets.push_back(net_of(0.5));
    DataParallel<NetImpl> parallel(nets.back(), {.device_ids = on_cpu(2)});
    const auto part = [&](const at::Tensor& x) { return parallel(x); };
    const at::Tensor x = images();
    (again ? nn::checkpoint(part, x) : part(x)).square().sum().backward();
  }
  EXPECT_EQ(nets[1]->norm->num_batches_tracked.item<int64_t>(), 1);
  EXPECT_TRUE(nets[1]->norm->running_mean.equal(nets[0]->norm->running_mean));
  EXPECT_TRUE(nets[1]->own_norm->running_var.equal(nets[0]->own_norm->running_var));
  expect_close(*nets[1], *nets[0]);
}

// Replicas within replicas draw from the generators of those.
TEST(DataParallel, NestedReplicasRepeatTheirBits) {
  struct OuterImpl : torch::nn::Cloneable<OuterImpl> {
    OuterImpl() { OuterImpl::reset(); }
    void reset() override { net = register_module("net", std::make_shared<NetImpl>(0.5)); }
    at::Tensor forward(const at::Tensor& x) {
      if (!inner) inner = std::make_shared<DataParallel<NetImpl>>(net, DataParallelOptions{.device_ids = on_cpu(2)});
      return nn::checkpoint([this](const at::Tensor& each) { return inner->forward(each); }, x);
    }
    std::shared_ptr<NetImpl> net;
    std::shared_ptr<DataParallel<NetImpl>> inner;
  };
  std::vector<at::Tensor> outputs, gradients;
  for (int run = 0; run < 20; ++run) {
    at::manual_seed(5);
    auto net = std::make_shared<OuterImpl>();
    DataParallel<OuterImpl> parallel(net, {.device_ids = on_cpu(2)});
    outputs.push_back(parallel(images()));
    outputs.back().square().sum().backward();
    gradients.push_back(net->net->linear->weight.grad());
    EXPECT_TRUE(outputs.back().equal(outputs[0])) << run;
    EXPECT_TRUE(gradients.back().equal(gradients[0])) << run;
  }
}

TEST(DataParallel, BuffersThatChangeBeforeABackwardThatNeedsThemAreAnError) {
  auto net = net_of();
  net->eval();
  DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(2)});
  const at::Tensor loss = parallel(images().requires_grad_(true)).sum();
  {
    const c10::AutoGradMode no_grad(false);
    net->norm->running_var.mul_(100);
  }
  EXPECT_THAT(refusal<std::exception>([&] { loss.backward(); }), HasSubstr("modified by an inplace operation"));
}

TEST(DataParallel, WrappingDrawsNoNumbers) {
  auto net = net_of();
  at::manual_seed(8);
  const at::Tensor next = at::rand({3});
  at::manual_seed(8);
  const DataParallel<NetImpl> parallel(net, {.device_ids = on_cpu(3)});
  EXPECT_TRUE(at::rand({3}).equal(next));
}

TEST(DataParallel, UndefinedTensorsGoToAllReplicas) {
  struct MaskedImpl : torch::nn::Cloneable<MaskedImpl> {
    MaskedImpl() { MaskedImpl::reset(); }
    void reset() override { linear = register_module("linear", torch::nn::Linear(4, 4)); }
    at::Tensor forward(const at::Tensor& x, const at::Tensor& mask) {
      return mask.defined() ? linear->forward(x) * mask : linear->forward(x);
    }
    torch::nn::Linear linear{nullptr};
  };
  auto net = std::make_shared<MaskedImpl>();
  DataParallel<MaskedImpl> parallel(net, {.device_ids = on_cpu(2)});
  const at::Tensor x = at::rand({5, 4});
  for (const at::Tensor& mask : {at::Tensor(), at::rand({5, 4})}) {
    const at::Tensor output = parallel(x, mask);
    EXPECT_LT((output - net->forward(x, mask)).abs().max().item<double>(), 1e-6);
    output.sum().backward();
  }
  EXPECT_THAT(refusal([&] { parallel(at::Tensor(), at::Tensor()); }), HasSubstr("no tensor that could be scattered"));
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
  EXPECT_THAT(refusal([&] {
                parallel(at::rand({2, 4}), Tensors{at::rand({4}).requires_grad_(true)});
              }),
              HasSubstr("the outputs depend on a tensor [4] that requires a gradient"));
  net->linear = net->replace_module("linear", torch::nn::Linear(4, 4));
  EXPECT_THAT(refusal([&] {
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

}  // namespace
}  // namespace lockstep::parallel
