// A network, its steps and its losses, for the loops in mixed precision.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/sharded_optimizer.h"

namespace lockstep::parallel {

using at::Tensor;

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

inline StepPlan plan(const World& world, int64_t number) {
  StepPlan step{.number = number, .samples = kLanes * 8, .lanes = {}};
  const auto own = world.own_lanes(kLanes);
  for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, 8});
  return step;
}

inline Tensor loss_of(Net& net, const StepPlan& step, size_t i, double factor = 1) {
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

}  // namespace lockstep::parallel
