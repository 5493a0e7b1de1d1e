// Wasserstein GANs with a gradient penalty (Gulrajani et al., "Improved training of Wasserstein GANs", NeurIPS 2017):
// the critic's loss holds the gradient of its own output, through this project's layers, in steps of lanes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <unistd.h>

#include <fstream>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/hash.h"
#include "lockstep/nn/batch_norm.h"
#include "lockstep/nn/conv2d.h"
#include "lockstep/nn/max_pool_relu.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

constexpr int kLanes = 4;
constexpr int64_t kSamples = 2;  // of a lane

// A convolution, BatchNorm with activation and residual, a max-pool, a depthwise convolution with a stride, a deep one.
struct CriticImpl : torch::nn::Module {
  CriticImpl() {
    const auto conv = [this](const char* name, int64_t in, int64_t out, int64_t k, int64_t stride, int64_t groups) {
      const auto options =
          torch::nn::Conv2dOptions(in, out, k).bias(false).padding(k / 2).stride(stride).groups(groups);
      nn::Conv2d made(options);
      made->weight.set_data(made->weight.data().contiguous(at::MemoryFormat::ChannelsLast));
      return register_module(name, made);
    };
    first = conv("first", 3, 32, 3, 1, 1);
    norm = register_module("norm", nn::BatchNorm2d(32));
    depthwise = conv("depthwise", 32, 32, 3, 2, 32);
    deep = conv("deep", 32, 2048, 1, 1, 1);
    head = register_module("head", torch::nn::Linear(2048, 1));
  }
  Tensor forward(const Tensor& images) {
    const Tensor x = first->forward(images.contiguous(at::MemoryFormat::ChannelsLast));
    const Tensor y = nn::max_pool_relu(norm->forward(x, nn::Activation::kRelu, x));
    return head->forward(deep->forward(depthwise->forward(y)).mean({2, 3}));
  }

  nn::Conv2d first{nullptr}, depthwise{nullptr}, deep{nullptr};
  nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Critic);

Tensor generated(torch::nn::Linear& generator, int64_t samples) {
  return generator->forward(at::randn({samples, 6})).tanh().view({samples, 3, 8, 8});
}

// E[D(fake)] - E[D(real)] + 10 · E[(|∂D/∂x| - 1)²], x between the two.
Tensor critic_loss(Critic& critic, const Tensor& real, const Tensor& fake) {
  const Tensor share = at::rand({real.size(0), 1, 1, 1});
  const Tensor between = (real * share + fake * (1 - share)).requires_grad_();
  const Tensor score = critic->forward(between);
  const Tensor slope = torch::autograd::grad({score.sum()}, {between}, {}, /*retain_graph=*/true,
                                             /*create_graph=*/true)[0];
  const Tensor penalty = (slope.flatten(1).norm(2, {1}) - 1).square().mean();
  return critic->forward(fake).mean() - critic->forward(real).mean() + 10 * penalty;
}

// Argument: "bn" or "syncbn", and the file that rank 0 writes the bits to.
RANK_PROGRAM(wgan_gp) {
  const auto world = join_world(context);
  at::manual_seed(5);
  Critic critic;
  torch::nn::Linear generator(6, 3 * 8 * 8);
  if (context.argument.starts_with("syncbn:")) convert_sync_batchnorm(*critic, world->communicator());
  DistributedDataParallel critics(critic.ptr(), world, {.seed = 4}), generators(generator.ptr(), world, {.seed = 4});
  torch::optim::Adam of_critic(critic->parameters(), 1e-3), of_generator(generator->parameters(), 1e-3);
  const Tensor real = at::rand({kLanes * kSamples, 3, 8, 8});
  const auto own = world->own_lanes(kLanes);
  const bool with_sync = find_sync_group(*critic) != nullptr;
  const amp::Policy policy{.level = amp::OptLevel::kO1};
  for (int64_t number = 0; number < 3; ++number) {
    StepPlan step{.number = number, .samples = kLanes * kSamples, .lanes = {}};
    for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, kSamples});
    critics.run(step, [&](size_t i) {
      const amp::AutocastScope autocast(policy);
      const Tensor fake = generated(generator, kSamples).detach();
      return critic_loss(critic, real.narrow(0, kSamples * step.lanes[i].index, kSamples), fake);
    });
    of_critic.step();
    of_critic.zero_grad();
    if (with_sync) continue;  // with several lanes on a rank, SyncBatchNorm is in its own network's steps alone
    generators.run(step, [&](size_t) { return -critic->forward(generated(generator, kSamples)).mean(); });
    of_generator.step();
    of_generator.zero_grad();
  }
  Sha256 hash;
  for (const auto& tensors : {critic->parameters(), critic->buffers(), generator->parameters()}) {
    for (const auto& tensor : tensors) {
      EXPECT_TRUE(tensor.isfinite().all().item<bool>());
      hash.update(tensor.contiguous().data_ptr(), tensor.nbytes());
    }
  }
  const std::string bits = hash.hex();
  if (context.rank == 0) std::ofstream(context.argument.substr(context.argument.find(':') + 1)) << bits;
}

std::string bits_on(int ranks, const std::string& kind) {
  const std::string path = testing::TempDir() + "gradient_penalty." + std::to_string(getpid());
  expect_ranks_pass("wgan_gp", ranks, kind + ":" + path);
  std::string bits;
  std::ifstream(path) >> bits;
  unlink(path.c_str());
  EXPECT_EQ(bits.size(), 64u);
  return bits;
}

TEST(GradientPenalty, SameBitsOnAnyNumberOfRanks) {
  for (const std::string kind : {"bn", "syncbn"}) {
    const std::string reference = bits_on(1, kind);
    for (const int ranks : {2, 4}) EXPECT_EQ(bits_on(ranks, kind), reference) << kind << " on " << ranks << " ranks";
  }
}

// The same critic of libtorch's layers alone.
Tensor libtorchs(Critic& net, torch::nn::BatchNorm2d& norm, const Tensor& images) {
  const Tensor x = at::conv2d(images, net->first->weight, {}, 1, 1);
  const Tensor y = at::max_pool2d(at::relu(norm->forward(x) + x), {2, 2});
  const Tensor z = at::conv2d(at::conv2d(y, net->depthwise->weight, {}, 2, 1, 1, 32), net->deep->weight);
  return net->head->forward(z.mean({2, 3}));
}

template <typename Forward>
Tensor penalty_of(const Forward& forward, const Tensor& images) {
  const Tensor leaf = images.detach().requires_grad_();
  const Tensor slope = torch::autograd::grad({forward(leaf).sum()}, {leaf}, {}, /*retain_graph=*/true,
                                             /*create_graph=*/true)[0];
  return (slope.flatten(1).norm(2, {1}) - 1).square().mean();
}

// Each rank's lanes hold parts of one batch; SyncBatchNorm's statistics and their slopes are those of all of it.
RANK_PROGRAM(joined_penalty) {
  const auto world = join_world(context);
  at::manual_seed(5);
  Critic critic;
  at::manual_seed(5);
  Critic alone;
  torch::nn::BatchNorm2d norm(32);
  const Tensor images = at::rand({kLanes * kSamples, 3, 8, 8});
  convert_sync_batchnorm(*critic, world->communicator());
  DistributedDataParallel ddp(critic.ptr(), world);
  const auto own = world->own_lanes(kLanes);
  StepPlan step{.number = 0, .samples = kLanes * kSamples, .lanes = {}};
  for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, kSamples});
  ddp.run(step, [&](size_t i) {
    return penalty_of([&](const Tensor& x) { return critic->forward(x); },
                      images.narrow(0, kSamples * step.lanes[i].index, kSamples)) +
           critic->head->bias.sum() * 0;
  });
  (penalty_of([&](const Tensor& x) { return libtorchs(alone, norm, x); }, images) + alone->head->bias.sum() * 0)
      .backward();
  const auto got = critic->named_parameters(), want = alone->named_parameters();
  for (const auto& item : want) {
    const Tensor theirs = item.key() == "norm.weight" ? norm->weight.grad()
                          : item.key() == "norm.bias" ? norm->bias.grad()
                                                      : item.value().grad();
    EXPECT_TRUE(at::allclose(got[item.key()].grad(), theirs, 1e-3, 1e-5)) << item.key();
  }
}
TEST(GradientPenalty, ThroughSyncBatchNormIsThatOfTheJoinedBatch) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("joined_penalty", ranks);
}

}  // namespace
}  // namespace lockstep::parallel
