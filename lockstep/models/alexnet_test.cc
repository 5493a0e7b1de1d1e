#include "lockstep/models/alexnet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/models/testing/networks.h"

namespace lockstep::models {
namespace {

using testing::Layout;
using testing::PlainLayers;

TEST(AlexNet, HasTorchvisionsNamesAndShapes) {
  AlexNet net(AlexNetOptions{}, 1);
  EXPECT_EQ(testing::layout_of(net->named_parameters()), (Layout{16, 61100840, 0xdaa92965c506c256}));
  EXPECT_EQ(testing::layout_of(net->named_buffers()), Layout{});
}

TEST(AlexNet, WeightsAreAPureFunctionOfTheSeed) {
  testing::expect_pure([](uint64_t seed) { return AlexNet(AlexNetOptions{.classes = 10}, seed); });
  const auto parameters = AlexNet(AlexNetOptions{}, 1)->named_parameters();
  EXPECT_NEAR(parameters["features.0.weight"].abs().max().item<double>(), 1 / std::sqrt(363.0), 1e-4);
  EXPECT_NEAR(parameters["classifier.6.bias"].abs().max().item<double>(), 1 / 64.0, 1e-3);
}

at::Tensor definition(const PlainLayers& plain, const at::Tensor& images) {
  const auto conv = [&](const char* name, const at::Tensor& x, int64_t stride, int64_t padding) {
    return at::relu(at::conv2d(x, plain.weight(name), plain.bias(name), stride, padding));
  };
  const auto linear = [&](const char* name, const at::Tensor& x) {
    return at::linear(x, plain.weight(name), plain.bias(name));
  };
  at::Tensor x = at::max_pool2d(conv("features.0", images, 4, 2), {3, 3}, {2, 2});
  x = at::max_pool2d(conv("features.3", x, 1, 2), {3, 3}, {2, 2});
  x = conv("features.10", conv("features.8", conv("features.6", x, 1, 1), 1, 1), 1, 1);
  x = at::adaptive_avg_pool2d(at::max_pool2d(x, {3, 3}, {2, 2}), {6, 6}).flatten(1);
  return linear("classifier.6", at::relu(linear("classifier.4", at::relu(linear("classifier.1", x)))));
}

TEST(AlexNet, ComputesItsDefinition) {
  at::manual_seed(1);
  AlexNet net(AlexNetOptions{.classes = 10, .dropout = 0}, 1);
  testing::expect_definition(net, at::randn({2, 3, 224, 224}), definition);
}

TEST(AlexNet, PoolsOtherSizesToItsOwn) {
  at::manual_seed(1);
  AlexNet net(AlexNetOptions{.classes = 10, .dropout = 0}, 1);
  testing::expect_definition(net, at::randn({2, 3, 63, 100}), definition);
}

TEST(AlexNet, DropsOutInTrainingAlone) {
  AlexNet net(AlexNetOptions{.classes = 10}, 1);
  const at::Tensor images = at::randn({2, 3, 64, 64});
  EXPECT_FALSE(at::equal(net->forward(images), net->forward(images)));
  net->eval();
  EXPECT_TRUE(at::equal(net->forward(images), net->forward(images)));
}

TEST(AlexNet, RefusesWhatCannotBe) {
  EXPECT_THROW(AlexNet(AlexNetOptions{.classes = 0}, 1), ConfigError);
  EXPECT_THROW(AlexNet(AlexNetOptions{.dropout = 1}, 1), ConfigError);
  AlexNet net(AlexNetOptions{.classes = 2}, 1);
  EXPECT_THROW(net->forward(at::rand({1, 3, 62, 63})), DataError);
  EXPECT_THROW(net->forward(at::rand({1, 1, 64, 64})), DataError);
}

}  // namespace
}  // namespace lockstep::models
