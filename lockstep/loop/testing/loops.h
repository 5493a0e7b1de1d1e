// Loops for the tests of their state.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/loop/early_stopping.h"
#include "lockstep/loop/state.h"
#include "lockstep/loop/testing/own_world.h"

namespace lockstep::loop::testing_support {

inline torch::nn::Linear linear(uint64_t seed) {
  at::manual_seed(seed);
  return torch::nn::Linear(4, 3);
}

// A network, its optimizer, mixed precision and all that else a loop has, with two steps taken.
template <typename Optimizer>
struct Loop {
  Loop(uint64_t seed, Optimizer made_of(const std::vector<at::Tensor>&), amp::OptLevel level)
      : net(linear(seed)),
        optimizer(made_of(net->parameters())),
        mixed({net.get()}, {&optimizer}, {.opt_level = level, .dtype = at::kHalf, .num_losses = 2}),
        ddp(net.ptr(), world) {}

  void train(int steps) {
    for (int i = 0; i < steps; ++i, ++step) {
      const auto x = at::randn({5, 4});  // of the generator, which is saved
      const parallel::StepPlan plan{.number = step, .samples = 5, .lanes = {{0, 5}}};
      const auto result = ddp.run(
          plan, [&](size_t) { return mixed.forward(net, x).square().mean(); }, mixed);
      mixed.step(optimizer, result);
      mixed.zero_grad(optimizer);
    }
    best = 0.5;
    text = "said";
    flag = true;
    average.add_(1);
    stopping.observe(0.25);
  }

  State state() {
    return State(*world, step,
                 {{"model", ddp},
                  {"optimizer", optimizer},
                  {"amp", mixed},
                  {"best", best},
                  {"text", text},
                  {"flag", flag},
                  {"average", average},
                  {"stopping", stopping}});
  }

  std::shared_ptr<World> world = own_world();
  torch::nn::Linear net;
  Optimizer optimizer;
  amp::MixedPrecision mixed;
  parallel::DistributedDataParallel ddp;
  int64_t step = 0;
  double best = 0;
  std::string text;
  bool flag = false;
  at::Tensor average = at::zeros({2});
  EarlyStopping stopping;
};

struct TinyLoop {
  std::shared_ptr<World> world = own_world();
  torch::nn::Linear net = linear(1);
  torch::optim::SGD optimizer{net->parameters(), torch::optim::SGDOptions(0.1)};
  int64_t step = 3;
  double best = 1;
  State state() { return State(*world, step, {{"model", *net}, {"optimizer", optimizer}, {"best", best}}); }
};

}  // namespace lockstep::loop::testing_support
