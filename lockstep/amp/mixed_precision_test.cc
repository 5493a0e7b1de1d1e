#include "lockstep/amp/mixed_precision.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::amp {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

torch::nn::Sequential make_net() {
  at::manual_seed(2);
  return torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 1));
}

// Without casts of operations a model of 16 bits takes inputs of 16 bits, and gives such.
TEST(MixedPrecision, InputsAndOutputsAreCastAsAskedFor) {
  auto net = make_net();
  const auto sgd = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.05}});
  MixedPrecision mixed({&*net}, {sgd.get()},
                       {.opt_level = OptLevel::kO2,
                        .dtype = at::kBFloat16,
                        .cast_ops = false,
                        .keep_batchnorm_fp32 = false,
                        .cast_model_outputs = at::kHalf});
  const Tensor x = at::randn({16, 4});
  EXPECT_EQ(mixed.cast_inputs(x).scalar_type(), at::kBFloat16);
  EXPECT_EQ(mixed.cast_inputs(at::ones({2}, at::kLong)).scalar_type(), at::kLong);
  const Tensor y = mixed.forward([&] { return net->forward(mixed.cast_inputs(x)); });
  EXPECT_EQ(y.scalar_type(), at::kHalf);
  EXPECT_EQ(mixed.cast_outputs(at::ones({2}, at::kLong)).scalar_type(), at::kLong);
  EXPECT_THROW(net->forward(x), c10::Error) << "nothing else casts";
  y.to(at::kFloat).square().sum().backward();
  const Tensor before = mixed.master_params(*sgd)[0].clone();
  mixed.step(*sgd, {.square_sum = 1, .loss_scale = 1});
  EXPECT_FALSE(at::equal(mixed.master_params(*sgd)[0], before));
}

// DistributedDataParallel's broadcast, or a checkpoint, changes the weights before the first step.
TEST(MixedPrecision, MastersBeginWithTheWeightsOfTheFirstStep) {
  for (const bool ours : {true, false}) {
    torch::nn::Linear net(torch::nn::LinearOptions(4, 1).bias(false));
    auto fused = optim::make_optimizer("sgd", net->parameters(), {{"lr", 1.0}});
    torch::optim::SGD plain(net->parameters(), torch::optim::SGDOptions(1.0));
    torch::optim::Optimizer& sgd = ours ? static_cast<torch::optim::Optimizer&>(*fused) : plain;
    MixedPrecision mixed({&*net}, {&sgd}, {.opt_level = OptLevel::kO2});
    const auto weights = net->parameters();
    {
      const at::NoGradGuard no_grad;
      Tensor weight = weights[0];
      weight.fill_(3);
    }
    net->forward(at::ones({1, 4}, at::kBFloat16)).sum().backward();
    mixed.step(sgd, {.square_sum = 4, .loss_scale = 1});
    EXPECT_TRUE(at::equal(mixed.master_params(sgd)[0], at::full({1, 4}, 2.0f))) << ours;
    mixed.load_masters(sgd, {at::full({1, 4}, 1.001f)});
    EXPECT_TRUE(at::equal(mixed.master_params(sgd)[0], at::full({1, 4}, 1.001f))) << ours;
    EXPECT_TRUE(at::equal(weights[0], at::full({1, 4}, 1.001f).to(at::kBFloat16))) << ours;
    mixed.zero_grad(sgd);
    net->forward(at::ones({1, 4}, at::kBFloat16)).sum().backward();
    mixed.step(sgd, {.square_sum = 4, .loss_scale = 1});
    EXPECT_TRUE(at::allclose(mixed.master_params(sgd)[0], at::full({1, 4}, 0.001f), 1e-3)) << ours;
    EXPECT_THAT(refusal([&] { mixed.load_masters(sgd, {}); }), HasSubstr("0 masters given, the optimizer steps 1"));
  }
}

// A resume by the optimizer's own state does this.
TEST(MixedPrecision, MastersThatTheOptimizerLoadedStay) {
  torch::nn::Linear net(torch::nn::LinearOptions(4, 1).bias(false));
  const auto sgd = optim::make_optimizer("sgd", net->parameters(), {{"lr", 1.0}});
  MixedPrecision mixed({&*net}, {sgd.get()}, {.opt_level = OptLevel::kO2});
  sgd->load_masters({at::full({1, 4}, 1.001f)});
  net->forward(at::zeros({1, 4}, at::kBFloat16)).sum().backward();
  mixed.step(*sgd, {.square_sum = 0, .loss_scale = 1});
  EXPECT_TRUE(at::equal(mixed.master_params(*sgd)[0], at::full({1, 4}, 1.001f)));
}

TEST(MixedPrecision, SeveralOptimizersShareOneVerdict) {
  torch::nn::Linear one(torch::nn::LinearOptions(4, 1).bias(false)), two(torch::nn::LinearOptions(4, 1).bias(false));
  auto fused = optim::make_optimizer("sgd", one->parameters(), {{"lr", 1.0}});
  torch::optim::SGD plain(two->parameters(), torch::optim::SGDOptions(1.0));
  MixedPrecision mixed({one.get(), two.get()}, {fused.get(), &plain}, {.opt_level = OptLevel::kO1, .dtype = at::kHalf});
  const auto w1 = one->parameters(), w2 = two->parameters();
  const Tensor before1 = w1[0].detach().clone(), before2 = w2[0].detach().clone();
  const auto fill = [&](float value) {
    for (auto parameter : {w1[0], w2[0]}) parameter.mutable_grad() = at::full({1, 4}, value);
  };
  fill(HUGE_VALF);
  EXPECT_TRUE(mixed.step({fused.get(), &plain}, {.square_sum = HUGE_VAL, .loss_scale = 65536}).skipped);
  EXPECT_EQ(mixed.loss_scale(), 32768) << "once";
  fill(32768);
  mixed.step({fused.get(), &plain}, {.square_sum = 8.0 * 32768 * 32768, .loss_scale = 32768});
  EXPECT_TRUE(at::allclose(w1[0], before1 - 1));
  EXPECT_TRUE(at::allclose(w2[0], before2 - 1));
  EXPECT_THAT(refusal([&] {
                mixed.step({fused.get(), &plain}, {.square_sum = 1, .loss_scale = 1});
              }),
              HasSubstr("those of a loss times 1, and the loss scale is 32768"));
}

}  // namespace
}  // namespace lockstep::amp
