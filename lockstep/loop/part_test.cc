// Optimizers as parts; all kinds of parts together: state_test.cc.
#include "lockstep/loop/part.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/loop/state.h"
#include "lockstep/loop/testing/own_world.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::loop {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;

torch::nn::Linear linear(uint64_t seed) {
  at::manual_seed(seed);
  return torch::nn::Linear(4, 3);
}

void step(optim::SGD& optimizer) {
  for (const at::Tensor& parameter : optimizer.all_parameters()) {
    parameter.mutable_grad() = at::ones_like(parameter).detach();
  }
  optimizer.step();
}

// In between, the network's part would save the averages as the weights, and the weights nowhere.
TEST(OptimizerPart, IsNotSavedOrLoadedWhileTheWeightsAreTheAverages) {
  const auto world = testing_support::own_world();
  torch::nn::Linear net = linear(1);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  optimizer.keep_average(0.9);
  int64_t steps = 2;
  State state(*world, steps, {{"model", *net}, {"optimizer", optimizer}});
  step(optimizer);
  step(optimizer);
  const checkpoint::Value saved = state.value();
  optimizer.exchange_averages();
  EXPECT_THAT(refusal([&] { state.value(); }), HasSubstr("call exchange_averages() again before"));
  EXPECT_THAT(refusal([&] { state.load(saved, "run.pt"); }), HasSubstr("call exchange_averages() again before"));
  optimizer.exchange_averages();
  state.load(saved, "run.pt");
}

}  // namespace
}  // namespace lockstep::loop
