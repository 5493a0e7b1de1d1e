#include "lockstep/models/mobilenet_v2.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/models/testing/networks.h"

namespace lockstep::models {
namespace {

using testing::Layout;
using testing::PlainLayers;

TEST(MobileNetV2, HasTorchvisionsNamesAndShapes) {
  MobileNetV2 net(MobileNetV2Options{}, 1);
  EXPECT_EQ(testing::layout_of(net->named_parameters()), (Layout{158, 3504872, 0x5202a4aacd419eef}));
  EXPECT_EQ(testing::layout_of(net->named_buffers()), (Layout{156, 34164, 0xa13b874e45dfa2f3}));
  const auto parameters = net->named_parameters();
  EXPECT_EQ(parameters["features.1.conv.0.0.weight"].sizes(), at::IntArrayRef({32, 1, 3, 3}));
  EXPECT_EQ(parameters["features.17.conv.2.weight"].sizes(), at::IntArrayRef({320, 960, 1, 1}));
  EXPECT_EQ(parameters["classifier.1.weight"].sizes(), at::IntArrayRef({1000, 1280}));
}

TEST(MobileNetV2, WeightsAreAPureFunctionOfTheSeed) {
  testing::expect_pure([](uint64_t seed) { return MobileNetV2(MobileNetV2Options{.classes = 10}, seed); });
  const auto parameters = MobileNetV2(MobileNetV2Options{}, 1)->named_parameters();
  EXPECT_NEAR(parameters["features.18.0.weight"].std().item().toDouble(), std::sqrt(2.0 / 1280), 0.001);
  EXPECT_NEAR(parameters["classifier.1.weight"].std().item().toDouble(), 0.01, 0.001);
}

at::Tensor conv_norm(const PlainLayers& plain, const std::string& name, const at::Tensor& x, int64_t stride = 1,
                     int64_t groups = 1) {
  return at::hardtanh(plain.norm(name + ".1", plain.conv(name + ".0", x, stride, groups)), 0, 6);
}

at::Tensor block(const PlainLayers& plain, const std::string& name, const at::Tensor& x, int64_t stride) {
  const bool expands = plain.weight(name + ".1.0").defined();
  at::Tensor y = expands ? conv_norm(plain, name + ".0", x) : x;
  y = conv_norm(plain, name + (expands ? ".1" : ".0"), y, stride, y.size(1));
  y = plain.norm(name + (expands ? ".3" : ".2"), plain.conv(name + (expands ? ".2" : ".1"), y));
  return stride == 1 && y.size(1) == x.size(1) ? x + y : y;
}

at::Tensor definition(const PlainLayers& plain, const at::Tensor& images) {
  at::Tensor x = conv_norm(plain, "features.0", images, 2);
  for (int number = 1; number <= 17; ++number) {
    const bool halves = number == 2 || number == 4 || number == 7 || number == 14;
    x = block(plain, "features." + std::to_string(number) + ".conv", x, halves ? 2 : 1);
  }
  x = conv_norm(plain, "features.18", x);
  return at::linear(x.mean({2, 3}), plain.weight("classifier.1"), plain.bias("classifier.1"));
}

TEST(MobileNetV2, ComputesItsDefinition) {
  at::manual_seed(1);
  MobileNetV2 net(MobileNetV2Options{.classes = 10, .dropout = 0}, 1);
  testing::expect_definition(net, at::randn({4, 3, 96, 96}), definition);
}

TEST(MobileNetV2, DropsOutInTrainingAlone) {
  MobileNetV2 net(MobileNetV2Options{.classes = 10, .dropout = 0.5}, 1);
  const at::Tensor images = at::randn({2, 3, 64, 64});
  EXPECT_FALSE(at::equal(net->forward(images), net->forward(images)));
  net->eval();
  EXPECT_TRUE(at::equal(net->forward(images), net->forward(images)));
}

TEST(MobileNetV2, TakesOtherSizes) {
  MobileNetV2 net(MobileNetV2Options{.classes = 3}, 1);
  EXPECT_EQ(net->forward(at::rand({2, 3, 37, 50})).sizes(), at::IntArrayRef({2, 3}));
  net->eval();
  EXPECT_EQ(net->forward(at::rand({1, 3, 1, 1})).sizes(), at::IntArrayRef({1, 3}));
}

TEST(MobileNetV2, RefusesWhatCannotBe) {
  EXPECT_THROW(MobileNetV2(MobileNetV2Options{.classes = 0}, 1), ConfigError);
  EXPECT_THROW(MobileNetV2(MobileNetV2Options{.dropout = 1}, 1), ConfigError);
  EXPECT_THROW(MobileNetV2(MobileNetV2Options{.dropout = -0.1}, 1), ConfigError);
  MobileNetV2 net(MobileNetV2Options{}, 1);
  EXPECT_THROW(net->forward(at::rand({1, 1, 32, 32})), DataError);
  EXPECT_THROW(net->forward(at::rand({3, 32, 32})), DataError);
}

}  // namespace
}  // namespace lockstep::models
