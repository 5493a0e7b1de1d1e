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

// Argument: the level at which MixedPrecision gives no masters, and whether it has the optimizer.
void expect_own_masters(const amp::Options& options, bool is_listed) {
  const auto world = testing_support::own_world();
  struct Loop {
    Loop(uint64_t seed, const amp::Options& options, bool is_listed)
        : net(linear(seed)),
          optimizer(net->parameters(), {.lr = 0.001}),
          mixed({net.get()},
                is_listed ? std::vector<optim::OptimizerRef>{optimizer} : std::vector<optim::OptimizerRef>(), options) {
      optimizer.follow_parameters();
      optimizer.keep_masters();
    }
    torch::nn::Linear net;
    optim::SGD optimizer;
    amp::MixedPrecision mixed;
  } whole(1, options, is_listed), resumed(2, options, is_listed);
  int64_t steps = 0;
  const auto state_of = [&](Loop& loop) {
    return State(*world, steps, {{"model", *loop.net}, {"optimizer", loop.optimizer}, {"amp", loop.mixed}});
  };
  step(whole.optimizer);
  const checkpoint::Value saved = state_of(whole).value();
  EXPECT_EQ(checkpoint::ValueView(saved, "run.pt")["model"]["weight"].tensor().scalar_type(), at::kFloat);
  state_of(resumed).load(saved, "run.pt");
  const auto one = whole.optimizer.masters(), other = resumed.optimizer.masters();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(at::equal(one[i], other[i]));
    EXPECT_FALSE(at::equal(one[i], one[i].to(at::kBFloat16).to(at::kFloat))) << "the weights alone would not do";
  }
}
TEST(OptimizerPart, HasTheMastersThatMixedPrecisionHasNotGivenIt) {
  expect_own_masters({.opt_level = amp::OptLevel::kO3}, /*is_listed=*/true);
  expect_own_masters({.opt_level = amp::OptLevel::kO2}, /*is_listed=*/false);
}

}  // namespace
}  // namespace lockstep::loop
