#include "lockstep/models/resnet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/models/testing/networks.h"

namespace lockstep::models {
namespace {

using testing::Layout;

template <typename Net>
void expect_layout(const Layout& parameters, const Layout& buffers) {
  Net net(ResNetOptions{}, 1);
  EXPECT_EQ(testing::layout_of(net->named_parameters()), parameters);
  EXPECT_EQ(testing::layout_of(net->named_buffers()), buffers);
}

TEST(ResNet, HasTorchvisionsNamesAndShapes) {
  expect_layout<ResNet18>({62, 11689512, 0xcddc57a62addf6e0}, {60, 9620, 0x62f82ab5515a2a8d});
  expect_layout<ResNet34>({110, 21797672, 0x8e49f23f123abc62}, {108, 17060, 0xacbef2785e6ed57b});
  expect_layout<ResNet50>({161, 25557032, 0x3200567b905d2f7}, {159, 53173, 0x230d9a62baaa5fa0});
  expect_layout<ResNet101>({314, 44549160, 0xfaec5a47c5a90bde}, {312, 105448, 0x2ef282769acc3142});
  expect_layout<ResNet152>({467, 60192808, 0x16c3a2776066e138}, {465, 151579, 0x2b2b6c87b1b9cf3d});
}

TEST(ResNet18, HasTorchvisionsShapes) {
  const auto parameters = ResNet18(ResNetOptions{}, 1)->named_parameters();
  EXPECT_EQ(parameters["layer2.0.downsample.0.weight"].sizes(), at::IntArrayRef({128, 64, 1, 1}));
  EXPECT_EQ(parameters["layer4.1.bn2.bias"].sizes(), at::IntArrayRef({512}));
  EXPECT_EQ(parameters["fc.weight"].sizes(), at::IntArrayRef({1000, 512}));
}

TEST(ResNet50, HasTorchvisionsShapes) {
  const auto parameters = ResNet50(ResNetOptions{}, 1)->named_parameters();
  EXPECT_EQ(parameters["layer1.0.downsample.0.weight"].sizes(), at::IntArrayRef({256, 64, 1, 1}));
  EXPECT_EQ(parameters["layer2.0.conv2.weight"].sizes(), at::IntArrayRef({128, 128, 3, 3}));
  EXPECT_EQ(parameters["layer4.2.conv3.weight"].sizes(), at::IntArrayRef({2048, 512, 1, 1}));
  EXPECT_EQ(parameters["fc.weight"].sizes(), at::IntArrayRef({1000, 2048}));
}

TEST(ResNet18, WeightsAreAPureFunctionOfTheSeed) {
  testing::expect_pure([](uint64_t seed) { return ResNet18(ResNetOptions{.classes = 10}, seed); });
  const auto parameters = ResNet18(ResNetOptions{}, 1)->named_parameters();
  EXPECT_NEAR(parameters["conv1.weight"].std().item().toDouble(), std::sqrt(2.0 / (64 * 49)), 0.001);
  EXPECT_NEAR(parameters["fc.bias"].abs().max().item().toDouble(), 1 / std::sqrt(512.0), 0.001);
}

TEST(ResNet50, WeightsAreAPureFunctionOfTheSeed) {
  testing::expect_pure([](uint64_t seed) { return ResNet50(ResNetOptions{.classes = 10}, seed); });
  const auto parameters = ResNet50(ResNetOptions{}, 1)->named_parameters();
  EXPECT_NEAR(parameters["layer3.0.conv3.weight"].std().item().toDouble(), std::sqrt(2.0 / 1024), 0.001);
  EXPECT_NEAR(parameters["fc.bias"].abs().max().item().toDouble(), 1 / std::sqrt(2048.0), 0.001);
}

at::Tensor block(const testing::PlainLayers& plain, const std::string& name, const at::Tensor& x, int64_t stride) {
  const auto conv_norm = [&](const std::string& number, const at::Tensor& y, int64_t s) {
    return plain.norm(name + ".bn" + number, plain.conv(name + ".conv" + number, y, s));
  };
  at::Tensor around = x;
  if (plain.weight(name + ".downsample.0").defined()) {
    around = plain.norm(name + ".downsample.1", plain.conv(name + ".downsample.0", x, stride));
  }
  if (!plain.weight(name + ".conv3").defined()) {
    return at::relu(conv_norm("2", at::relu(conv_norm("1", x, stride)), 1) + around);
  }
  const at::Tensor inner = at::relu(conv_norm("2", at::relu(conv_norm("1", x, 1)), stride));
  return at::relu(conv_norm("3", inner, 1) + around);
}

at::Tensor definition(const testing::PlainLayers& plain, const at::Tensor& images) {
  at::Tensor x = at::relu(plain.norm("bn1", plain.conv("conv1", images, 2)));
  x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  for (int layer = 1; layer <= 4; ++layer) {
    const auto name = [layer](int number) { return cat("layer", layer, '.', number); };
    for (int number = 0; plain.weight(name(number) + ".conv1").defined(); ++number) {
      x = block(plain, name(number), x, layer > 1 && number == 0 ? 2 : 1);
    }
  }
  return at::linear(x.mean({2, 3}), plain.weight("fc"), plain.bias("fc"));
}

TEST(ResNet18, ComputesItsDefinition) {
  at::manual_seed(1);
  ResNet18 net(ResNetOptions{.classes = 10}, 1);
  testing::expect_definition(net, at::randn({4, 3, 64, 64}), definition);
}

TEST(ResNet50, ComputesItsDefinition) {
  at::manual_seed(1);
  ResNet50 net(ResNetOptions{.classes = 10}, 1);
  testing::expect_definition(net, at::randn({4, 3, 64, 64}), definition);
}

TEST(ResNet18, TakesOtherSizes) {
  ResNet18 net(ResNetOptions{.classes = 3}, 1);
  EXPECT_EQ(net->forward(at::rand({2, 3, 37, 50})).sizes(), at::IntArrayRef({2, 3}));
  net->eval();
  EXPECT_EQ(net->forward(at::rand({1, 3, 1, 1})).sizes(), at::IntArrayRef({1, 3}));
  EXPECT_EQ(net->forward(at::rand({0, 3, 32, 32})).sizes(), at::IntArrayRef({0, 3}));
}

TEST(ResNet18, RefusesWhatCannotBe) {
  EXPECT_THROW(ResNet18(ResNetOptions{.classes = 0}, 1), ConfigError);
  EXPECT_THROW(ResNet18(ResNetOptions{.classes = 1 << 30}, 1), ConfigError);
  ResNet18 net(ResNetOptions{}, 1);
  EXPECT_THROW(net->forward(at::rand({1, 1, 32, 32})), DataError);
  EXPECT_THROW(net->forward(at::rand({3, 32, 32})), DataError);
}

}  // namespace
}  // namespace lockstep::models
