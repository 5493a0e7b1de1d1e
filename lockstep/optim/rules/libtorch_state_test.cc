#include "lockstep/optim/rules/libtorch_state.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <functional>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::optim {
namespace {

using ::testing::HasSubstr;
using testing_support::refusal;
using Make = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;

std::vector<at::Tensor> parameters() {
  at::manual_seed(1);
  return {at::randn({3, 2}).requires_grad_(), at::randn({4}).requires_grad_()};
}

// Takes a step with gradients that depend on the weights.
void step(torch::optim::Optimizer& optimizer, const std::vector<at::Tensor>& weights) {
  for (const auto& weight : weights) weight.mutable_grad() = (weight.detach() * 0.3).sin() + 0.1;
  optimizer.step();
}

std::vector<std::pair<std::string, Make>> kinds() {
  using namespace torch::optim;  // NOLINT: names of five optimizers
  return {
      {"sgd",
       [](auto p) {
         return std::make_unique<SGD>(p, SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true));
       }},
      {"adam",
       [](auto p) { return std::make_unique<torch::optim::Adam>(p, torch::optim::AdamOptions(0.01).amsgrad(true)); }},
      {"adamw",
       [](auto p) {
         return std::make_unique<torch::optim::AdamW>(p, torch::optim::AdamWOptions(0.01).betas({0.8, 0.99}));
       }},
      {"rmsprop",
       [](auto p) { return std::make_unique<RMSprop>(p, RMSpropOptions(0.01).momentum(0.9).centered(true)); }},
      {"adagrad",
       [](auto p) {
         return std::make_unique<torch::optim::Adagrad>(p, torch::optim::AdagradOptions(0.1).lr_decay(0.01));
       }},
  };
}

TEST(LibtorchState, AnOptimizerContinuesWithTheSameBits) {
  for (const auto& [name, make] : kinds()) {
    const auto weights = parameters();
    const auto optimizer = make(weights);
    EXPECT_EQ(libtorch_name(*optimizer), name);
    for (int i = 0; i < 3; ++i) step(*optimizer, weights);
    auto other = parameters();
    for (size_t i = 0; i < other.size(); ++i) other[i].detach().copy_(weights[i].detach());
    const auto resumed = make(other);
    for (auto& group : resumed->param_groups()) group.options().set_lr(7);
    load_libtorch_state(*resumed, libtorch_state(*optimizer));
    for (int i = 0; i < 3; ++i) {
      step(*optimizer, weights);
      step(*resumed, other);
    }
    for (size_t i = 0; i < other.size(); ++i) EXPECT_TRUE(at::equal(other[i], weights[i])) << name;
  }
}

TEST(LibtorchState, TheOptimizerOfThisLibraryReadsIt) {
  for (const auto& [name, make] : kinds()) {
    const auto weights = parameters();
    const auto optimizer = make(weights);
    for (int i = 0; i < 3; ++i) step(*optimizer, weights);
    auto other = parameters();
    for (size_t i = 0; i < other.size(); ++i) other[i].detach().copy_(weights[i].detach());
    const auto ours = make_optimizer(name, other);
    ours->load_state_dict(libtorch_state(*optimizer));
    step(*optimizer, weights);
    step(*ours, other);
    for (size_t i = 0; i < other.size(); ++i) EXPECT_TRUE(at::allclose(other[i], weights[i], 1e-5, 1e-6)) << name;
    const auto back = make(other);
    load_libtorch_state(*back, ours->state_dict());
    EXPECT_EQ(back->param_groups()[0].options().get_lr(), optimizer->param_groups()[0].options().get_lr());
  }
}

TEST(LibtorchState, WhatDoesNotFitIsRefusedAndNothingChanges) {
  const auto weights = parameters();
  torch::optim::SGD optimizer(weights, torch::optim::SGDOptions(0.1).momentum(0.9));
  step(optimizer, weights);
  OptimizerState state = libtorch_state(optimizer);
  OptimizerState fewer = state;
  fewer.groups[0].parameters.pop_back();
  EXPECT_THAT(refusal([&] { load_libtorch_state(optimizer, fewer); }), HasSubstr("group 0 has 1 parameters"));
  OptimizerState shape = state;
  shape.groups[0].options[0].value = 0.5;  // the rate, which stays
  shape.parameters[0].tensors[0].value = at::zeros({5});
  const std::vector<std::string> names = {"conv.weight", "conv.bias"};
  EXPECT_THAT(refusal([&] { load_libtorch_state(optimizer, shape, names); }),
              HasSubstr("sgd, conv.weight: momentum_buffer is [5] in the checkpoint"));
  EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.1);
  torch::optim::LBFGS other(weights);
  EXPECT_EQ(libtorch_name(other), "");
  EXPECT_THAT(refusal([&] { libtorch_state(other); }), HasSubstr("none of libtorch's SGD"));
}

}  // namespace
}  // namespace lockstep::optim
