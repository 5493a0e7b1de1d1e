#include "lockstep/models/lenet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::models {
namespace {

TEST(LeNet, HasTheNamesAndShapesOfTheCourse) {
  LeNet net(LeNetOptions{}, 1);
  const auto parameters = net->named_parameters();
  const std::pair<std::string, std::vector<int64_t>> expected[] = {
      {"conv1.weight", {20, 1, 5, 5}}, {"conv1.bias", {20}}, {"conv2.weight", {20, 20, 5, 5}}, {"conv2.bias", {20}},
      {"fc.weight", {10, 980}},        {"fc.bias", {10}}};
  ASSERT_EQ(parameters.size(), 6u);
  int64_t count = 0;
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(parameters[i].key(), expected[i].first);
    EXPECT_EQ(parameters[i].value().sizes(), at::IntArrayRef(expected[i].second));
    EXPECT_TRUE(parameters[i].value().requires_grad());
    count += parameters[i].value().numel();
  }
  EXPECT_EQ(count, 20350);
}

TEST(LeNet, WeightsAreAPureFunctionOfTheSeed) {
  LeNet a(LeNetOptions{}, 7);
  at::manual_seed(99);
  LeNet b(LeNetOptions{}, 7);
  LeNet other(LeNetOptions{}, 8);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(at::equal(a->parameters()[i], b->parameters()[i]));
    if (a->parameters()[i].dim() > 1) {
      EXPECT_FALSE(at::equal(a->parameters()[i], other->parameters()[i]));
    } else {
      EXPECT_EQ(a->parameters()[i].abs().sum().item().toDouble(), 0);
    }
  }
  EXPECT_NEAR(a->parameters()[2].std().item().toDouble(), std::sqrt(2.0 / 500), 0.001);
}

// The definition, with libtorch's functions in the order in which the course has them.
at::Tensor reference(LeNet& net, const at::Tensor& images) {
  const auto p = net->parameters();
  at::Tensor x = at::max_pool2d(at::relu(at::conv2d(images, p[0], p[1], 1, 2)), {2, 2});
  x = at::max_pool2d(at::relu(at::conv2d(x, p[2], p[3], 1, 2)), {2, 2});
  return at::linear(x.flatten(1), p[4], p[5]);
}

std::vector<at::Tensor> gradients(LeNet& net, const at::Tensor& logits) {
  net->zero_grad();
  at::cross_entropy_loss(logits, at::arange(logits.size(0)) % 10).backward();
  std::vector<at::Tensor> result;
  for (const at::Tensor& p : net->parameters()) result.push_back(p.grad().clone());
  return result;
}

void expect_definition(LeNet& net) {
  const at::Tensor images = at::rand({6, 1, 28, 28});
  const at::Tensor logits = net->forward(images);
  const at::Tensor expected = reference(net, images);
  EXPECT_EQ(logits.sizes(), at::IntArrayRef({6, 10}));
  EXPECT_TRUE(at::allclose(logits, expected, 1e-5, 1e-5));
  const auto ours = gradients(net, logits);
  const auto theirs = gradients(net, expected);
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-4, 1e-6)) << i;
}

TEST(LeNet, ComputesItsDefinition) {
  LeNet net(LeNetOptions{}, 1);
  expect_definition(net);
}

TEST(LeNet, ComputesItsDefinitionChannelsLast) {
  LeNet net(LeNetOptions{}, 1);
  for (at::Tensor p : net->parameters()) {
    if (p.dim() == 4) p.set_data(p.contiguous(at::MemoryFormat::ChannelsLast));
  }
  expect_definition(net);
}

TEST(LeNet, TakesOtherSizes) {
  LeNet net(LeNetOptions{.classes = 3, .in_channels = 2, .image_size = 12}, 1);
  EXPECT_EQ(net->forward(at::rand({5, 2, 12, 12})).sizes(), at::IntArrayRef({5, 3}));
  EXPECT_EQ(net->forward(at::rand({0, 2, 12, 12})).sizes(), at::IntArrayRef({0, 3}));
}

TEST(LeNet, RefusesWhatCannotBe) {
  for (const LeNetOptions& bad :
       {LeNetOptions{.classes = 0}, LeNetOptions{.in_channels = 0}, LeNetOptions{.image_size = 30},
        LeNetOptions{.image_size = 0}, LeNetOptions{.image_size = 1 << 20}, LeNetOptions{.classes = 1 << 30}}) {
    EXPECT_THROW(LeNet(bad, 1), ConfigError);
  }
  LeNet net(LeNetOptions{}, 1);
  EXPECT_THROW(net->forward(at::rand({1, 28, 28})), DataError);
  EXPECT_THROW(net->forward(at::rand({1, 3, 28, 28})), DataError);
  EXPECT_THROW(net->forward(at::rand({1, 1, 32, 32})), DataError);
}

}  // namespace
}  // namespace lockstep::models
