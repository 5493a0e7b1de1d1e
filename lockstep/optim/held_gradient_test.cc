#include "lockstep/optim/held_gradient.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/clip.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::optim {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

struct HeldGradientTest : testing::TestWithParam<bool> {
  torch::nn::Linear net{3, 2};

  // Gradients of ones, dense or sparse.
  void backward() {
    net->zero_grad();
    net->forward(at::ones({1, 3})).sum().backward();
    if (!GetParam()) return;
    for (const Tensor& parameter : net->parameters()) parameter.mutable_grad() = parameter.grad().to_sparse();
  }
  void hold_all(double loss_scale) {
    for (const Tensor& parameter : net->parameters()) hold_scaled(parameter.grad(), loss_scale);
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, HeldGradientTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Sparse" : "Dense"; });

TEST_P(HeldGradientTest, NobodyTakesAScaledOne) {
  backward();
  hold_all(1024);
  const auto before = net->weight.detach().clone();
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  torch::optim::SGD momentum(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1));
  torch::optim::Adagrad adagrad(net->parameters());
  torch::optim::Adam adam(net->parameters());
  torch::optim::RMSprop rmsprop(net->parameters());
  torch::optim::LBFGS lbfgs(net->parameters());
  for (torch::optim::Optimizer* each : std::initializer_list<torch::optim::Optimizer*>{&sgd, &momentum, &adagrad}) {
    EXPECT_THAT(refusal([&] { each->step(); }), HasSubstr("has a loss scale of 1024 in it"));
  }
  if (!GetParam()) {
    EXPECT_THAT(refusal([&] { adam.step(); }), HasSubstr("has a loss scale of 1024 in it"));
    EXPECT_THAT(refusal([&] { rmsprop.step(); }), HasSubstr("has a loss scale of 1024 in it"));
    EXPECT_THAT(refusal([&] { lbfgs.step([] { return at::ones({}); }); }), HasSubstr("has a loss scale of 1024 in it"));
  }
  for (const auto& name : optimizer_names()) {
    EXPECT_THAT(refusal([&] { make_optimizer(name, net->parameters())->step(); }), HasSubstr("a loss scale of 1024"))
        << name;
  }
  EXPECT_THAT(refusal([&] { torch::nn::utils::clip_grad_norm_(net->parameters(), 1); }),
              HasSubstr("loss scale of 1024"));
  EXPECT_THAT(refusal([&] { torch::nn::utils::clip_grad_value_(net->parameters(), 1); }), HasSubstr("of 1024"));
  EXPECT_THAT(refusal([&] { clip_grad_norm(net->parameters(), 1); }), HasSubstr("loss scale of 1024"));
  EXPECT_THAT(refusal([&] {
                net->forward(at::ones({1, 3})).sum().backward();
              }),
              HasSubstr("loss scale of 1024"))
      << "an unscaled gradient can't be added";
  EXPECT_TRUE(at::equal(net->weight, before));
}

TEST_P(HeldGradientTest, CanBeDroppedAndReleased) {
  backward();
  hold_all(1024);
  EXPECT_EQ(loss_scale_of(net->weight.grad()), 1024);
  {
    const UseHeldGradients use;
    EXPECT_EQ(net->weight.grad().to_dense().sum().item<double>(), 6);
  }
  net->zero_grad(/*set_to_none=*/false);
  EXPECT_EQ(loss_scale_of(net->weight.grad()), 1024);
  net->zero_grad();
  EXPECT_FALSE(net->weight.grad().defined());
  backward();
  hold_all(8);
  for (const Tensor& parameter : net->parameters()) release(parameter.grad());
  EXPECT_EQ(loss_scale_of(net->weight.grad()), 1);
  const auto before = net->weight.detach().clone();
  torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.5)).step();
  EXPECT_TRUE(at::allclose(net->weight, before - 0.5));
  hold_all(1);
  EXPECT_EQ(hold_of(net->weight.grad()), nullptr) << "there is nothing to hold";
}

// As after an overflow: a loop may look at the gradients and clip them, but not step.
TEST(HeldGradient, AReadableOneCanBeClippedButNotStepped) {
  torch::nn::Linear own{3, 2};
  own->forward(at::ones({1, 3})).sum().backward();
  for (const Tensor& parameter : own->parameters()) {
    hold(parameter.grad(), {.why = "is not finite; call step() of the scaler", .readable = true});
  }
  EXPECT_NEAR(torch::nn::utils::clip_grad_norm_(own->parameters(), 1), std::sqrt(8.0), 1e-5);
  EXPECT_NEAR(own->weight.grad().norm().item<double>(), std::sqrt(6.0 / 8), 1e-5) << "clipped";
  torch::nn::utils::clip_grad_value_(own->parameters(), 0.1);
  torch::optim::SGD sgd(own->parameters(), torch::optim::SGDOptions(0.1));
  torch::optim::SGD decayed(own->parameters(), torch::optim::SGDOptions(0.1).weight_decay(0.1).momentum(0.9));
  torch::optim::Adam adam(own->parameters());
  for (torch::optim::Optimizer* each : std::initializer_list<torch::optim::Optimizer*>{&sgd, &decayed, &adam}) {
    EXPECT_THAT(refusal([&] { each->step(); }), HasSubstr("is not finite; call step() of the scaler"));
  }
  EXPECT_THAT(refusal([&] { make_optimizer("adam", own->parameters())->step(); }), HasSubstr("is not finite"));
}

TEST(HeldGradient, AnUpdateTakesItsOwnScaleOut) {
  const Tensor weight = at::zeros({4}).requires_grad_();
  weight.mutable_grad() = at::full({4}, 8.0f);
  hold_scaled(weight.grad(), 8);
  const auto sgd = make_optimizer("sgd", {weight}, {{"lr", 1.0}});
  EXPECT_THAT(refusal([&] { sgd->update({.grad_multiplier = 0.25, .loss_scale = 4}); }),
              HasSubstr("a loss scale of 8"));
  sgd->update({.grad_multiplier = 1.0 / 8, .loss_scale = 8});
  EXPECT_TRUE(at::equal(weight, at::full({4}, -1.0f)));
}

}  // namespace
}  // namespace lockstep::optim
