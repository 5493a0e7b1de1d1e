#include "lockstep/compat/apex/fp16_utils.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <limits>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::apex::fp16_utils {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

torch::nn::Sequential make_net() {
  at::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 2));
}

TEST(Fp16Utils, ConvertsAModuleAndANetwork) {
  auto net = make_net();
  convert_module(*net, at::kHalf);
  EXPECT_EQ(net->parameters()[0].scalar_type(), at::kFloat) << "a container has nothing of its own";
  convert_module(*net[0], at::kBFloat16);
  EXPECT_EQ(net->parameters()[0].scalar_type(), at::kBFloat16);
  convert_network(*net, at::kHalf);
  EXPECT_EQ(net->parameters()[0].scalar_type(), at::kHalf);
  EXPECT_EQ(net->parameters()[2].scalar_type(), at::kFloat) << "BatchNorm's";
  net->to(at::kHalf);
  BN_convert_float(*net);
  EXPECT_EQ(net->parameters()[2].scalar_type(), at::kFloat);
  EXPECT_EQ(net->buffers()[0].scalar_type(), at::kFloat);
  EXPECT_EQ(net->parameters()[4].scalar_type(), at::kHalf);
  torch::nn::BatchNorm1d bare(torch::nn::BatchNorm1dOptions(4).affine(false));
  bare->to(at::kHalf);
  BN_convert_float(*bare);
  EXPECT_EQ(bare->buffers()[0].scalar_type(), at::kHalf) << "has no weights";
}

TEST(Fp16Utils, ModelsTakeFp32) {
  EXPECT_EQ(tofp16()->forward(at::ones({2})).scalar_type(), at::kHalf);
  torch::nn::Linear linear(3, 2);
  FP16Model model(linear);
  EXPECT_EQ(model.forward(at::ones({5, 3})).scalar_type(), at::kHalf);
  EXPECT_EQ(linear->weight.scalar_type(), at::kHalf);
  EXPECT_EQ(model.parameters().size(), 2u);
  auto net = network_to_half(make_net());
  EXPECT_EQ(net.forward(at::ones({5, 3})).scalar_type(), at::kHalf);
  EXPECT_EQ(net.parameters()[2].scalar_type(), at::kFloat);
}

// One step by hand, with masters of their own and with a flat one.
TEST(Fp16Utils, MastersStepAndReturn) {
  for (const bool flat : {false, true}) {
    torch::nn::Linear net(3, 2);
    net->to(at::kHalf);
    const auto [model_params, master_params] = prep_param_lists(*net, flat);
    ASSERT_EQ(model_params.size(), 2u);
    ASSERT_EQ(master_params.size(), flat ? 1u : 2u);
    const Tensor before = net->weight.detach().to(at::kFloat);
    for (const Tensor& parameter : model_params) parameter.mutable_grad() = at::full_like(parameter, 0.5);
    model_grads_to_master_grads(model_params, master_params, flat);
    for (const Tensor& master : master_params) {
      EXPECT_EQ(master.scalar_type(), at::kFloat);
      EXPECT_TRUE(at::equal(master.grad(), at::full_like(master, 0.5)));
      const at::NoGradGuard no_grad;
      master.sub_(master.grad());
    }
    master_params_to_model_params(model_params, master_params, flat);
    EXPECT_TRUE(at::equal(net->weight, (before - 0.5).to(at::kHalf))) << flat;
  }
}

TEST(Fp16Utils, AMasterWithoutAGradient) {
  torch::nn::Linear net(3, 2);
  net->bias.requires_grad_(false);
  const auto [model_params, master_params] = prep_param_lists(*net);
  ASSERT_EQ(model_params.size(), 1u) << "what is trained";
  EXPECT_FALSE(master_params[0].is_alias_of(model_params[0]));
  master_params[0].mutable_grad() = at::ones({2, 3});
  model_grads_to_master_grads(model_params, master_params);
  EXPECT_FALSE(master_params[0].grad().defined());
}

TEST(Fp16Utils, RefusesListsThatDoNotFit) {
  auto net = make_net();
  convert_network(*net, at::kHalf);
  EXPECT_THAT(refusal([&] { prep_param_lists(*net, true); }), HasSubstr("a flat master is for one dtype"));
  const auto lists = prep_param_lists(*net);
  EXPECT_THAT(refusal([&] { model_grads_to_master_grads(lists.model_params, {}); }),
              HasSubstr("do not fit each other"));
  EXPECT_THAT(refusal([&] { master_params_to_model_params(lists.model_params, lists.master_params, true); }),
              HasSubstr("do not fit each other"));
  const auto flat = prep_param_lists(*make_net(), true);
  EXPECT_THAT(refusal([&] { model_grads_to_master_grads(flat.model_params, flat.master_params, true); }),
              HasSubstr("parameter 0 has no gradient"));
}

TEST(Fp16Utils, NumbersAndNorms) {
  EXPECT_EQ(to_python_float(at::full({1}, 2.5)), 2.5);
  const Tensor p = at::zeros({2}).requires_grad_();
  p.mutable_grad() = at::tensor({3.0f, 4.0f});
  EXPECT_NEAR(clip_grad_norm({p}, 1), 5, 1e-6);
  EXPECT_TRUE(at::allclose(p.grad(), at::tensor({0.6f, 0.8f}), 1e-4));
  EXPECT_NEAR(clip_grad_norm({p}, 1, std::numeric_limits<double>::infinity()), 0.8, 1e-4);
}

}  // namespace
}  // namespace lockstep::apex::fp16_utils
