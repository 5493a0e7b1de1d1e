#include "lockstep/amp/cast_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

namespace lockstep::amp {
namespace {

torch::nn::Sequential make_net() {
  at::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3)), torch::nn::BatchNorm2d(4));
}

TEST(CastModel, KeepsBatchNormInFp32) {
  auto net = make_net();
  const auto before = net->parameters();
  cast_model(*net, at::kHalf, /*keep_batchnorm_fp32=*/true);
  EXPECT_TRUE(net->parameters()[0].is_same(before[0])) << "optimizers hold it";
  EXPECT_EQ(before[0].scalar_type(), at::kHalf);
  EXPECT_TRUE(before[0].requires_grad() && before[0].is_leaf());
  for (const auto& item : net[1]->named_parameters()) EXPECT_EQ(item.value().scalar_type(), at::kFloat) << item.key();
  for (const auto& item : net[1]->named_buffers()) {
    if (item.key() != "num_batches_tracked") EXPECT_EQ(item.value().scalar_type(), at::kFloat) << item.key();
  }
}

TEST(CastModel, CastsAllOfItIfAsked) {
  auto net = make_net();
  cast_model(*net, at::kBFloat16, /*keep_batchnorm_fp32=*/false);
  for (const auto& parameter : net->parameters()) EXPECT_EQ(parameter.scalar_type(), at::kBFloat16);
  for (const auto& item : net->named_buffers()) {
    EXPECT_EQ(item.value().scalar_type(), item.key() == "1.num_batches_tracked" ? at::kLong : at::kBFloat16);
  }
  cast_model(*make_net()[1], at::kHalf, false);  // a module by itself
}

TEST(CastModel, ReturnsTheValuesBefore) {
  auto net = make_net();
  const auto weight = net->parameters()[0].detach().clone();
  const auto exact = cast_models({&*net}, make_policy({.opt_level = OptLevel::kO2}));
  const auto parameters = net->parameters();
  ASSERT_EQ(exact.size(), 2u) << "BatchNorm's stay as they are";
  EXPECT_TRUE(at::equal(exact.at(parameters[0].unsafeGetTensorImpl()), weight));
  EXPECT_TRUE(at::equal(parameters[0], weight.to(at::kBFloat16)));
  auto plain = make_net();
  EXPECT_TRUE(cast_models({&*plain}, make_policy({.opt_level = OptLevel::kO1})).empty());
  EXPECT_EQ(plain->parameters()[0].scalar_type(), at::kFloat);
}

TEST(CastModel, HalvesWeightsAndGradients) {
  const auto bytes = [](OptLevel level) {
    auto net = make_net();
    cast_models({&*net}, make_policy({.opt_level = level}));
    size_t sum = 0;
    const at::Tensor x = at::randn({2, 3, 8, 8});
    const at::Tensor conv = net->parameters()[0];
    net[0]->as<torch::nn::Conv2dImpl>()->forward(x.to(conv.scalar_type())).sum().backward();
    for (const auto& parameter : net[0]->parameters()) sum += parameter.nbytes() + parameter.grad().nbytes();
    return sum;
  };
  EXPECT_EQ(bytes(OptLevel::kO2) * 2, bytes(OptLevel::kO0));
}

}  // namespace
}  // namespace lockstep::amp
