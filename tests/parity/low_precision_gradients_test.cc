// Compares low-precision gradients, which the fold takes before autocast's cast to fp32, with those that it takes
// after.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "lockstep/amp/autocast.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::Ranks;

// Two layers, the first one used twice.
struct NetImpl : torch::nn::Module {
  torch::nn::Linear inner{nullptr}, outer{nullptr};
  NetImpl() {
    at::manual_seed(3);
    inner = register_module("inner", torch::nn::Linear(6, 6));
    outer = register_module("outer", torch::nn::Linear(6, 2));
  }
  Tensor forward(const Tensor& x) { return outer->forward(at::relu(inner->forward(at::relu(inner->forward(x))))); }
};
TORCH_MODULE(Net);

constexpr int64_t kRows = 4;

Tensor loss_of(Net& net, int rank) {
  at::manual_seed(100 + static_cast<uint64_t>(rank));
  return net->forward(at::randn({kRows, 6})).square().mean();
}

// Returns the gradients of one step in bf16. Over shared memory they are taken before their cast, unless `prepare`
// hooks them.
std::vector<Tensor> gradients_of_step(const std::shared_ptr<World>& world, const DdpOptions& options,
                                      const std::function<void(Net&)>& prepare) {
  Net net;
  prepare(net);
  DistributedDataParallel ddp(net.ptr(), world, options);
  const StepPlan step{.number = 0, .samples = kRows * world->size(), .lanes = {{world->rank(), kRows}}};
  ddp.run(step, [&](size_t) {
    const amp::AutocastScope autocast({.level = amp::OptLevel::kO1});
    return loss_of(net, world->rank()).to(at::kFloat);
  });
  std::vector<Tensor> gradients;
  for (const auto& parameter : net->parameters()) gradients.push_back(parameter.grad().clone());
  return gradients;
}

RANK_PROGRAM(low_precision_gradients) {
  const auto world = join_world(context);
  int hooked = 0;
  const auto plain = gradients_of_step(world, {}, [](Net&) {});
  const auto cast = gradients_of_step(world, {}, [&](Net& net) {
    for (const auto& parameter : net->parameters()) parameter.register_hook([&](const Tensor&) { ++hooked; });
  });
  EXPECT_EQ(hooked, 4);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(plain[i], cast[i])) << i;
  const auto delayed = gradients_of_step(world, {.delay_allreduce = true}, [](Net&) {});
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(plain[i], delayed[i])) << i;
}

TEST(DataParallel, LowPrecisionGradients) {
  for (const int size : {1, 2, 3}) expect_ranks_pass("low_precision_gradients", size);
}

// Weights of the norm's layer come after their cast, the others before.
RANK_PROGRAM(low_precision_and_static_graph) {
  const auto world = join_world(context);
  at::manual_seed(3);
  torch::nn::Sequential net(torch::nn::Linear(6, 6), torch::nn::LayerNorm(torch::nn::LayerNormOptions({6})),
                            torch::nn::Linear(6, 2));
  DistributedDataParallel ddp(net.ptr(), world, {.static_graph = true});
  for (int64_t number = 0; number < 3; ++number) {
    net->zero_grad();
    const StepPlan step{.number = number, .samples = kRows * world->size(), .lanes = {{world->rank(), kRows}}};
    ddp.run(step, [&](size_t) {
      const amp::AutocastScope autocast({.level = amp::OptLevel::kO1});
      return net->forward(at::randn({kRows, 6})).square().mean().to(at::kFloat);
    });
  }
}

TEST(DataParallel, LowPrecisionGradientsCountInAStaticGraph) {
  for (const int size : {1, 2}) expect_ranks_pass("low_precision_and_static_graph", size);
}

}  // namespace
}  // namespace lockstep::parallel
