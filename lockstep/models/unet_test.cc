#include "lockstep/models/unet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/models/testing/networks.h"

namespace lockstep::models {
namespace {

using testing::Layout;
using testing::PlainLayers;

TEST(UNet, HasPytorchUNetsNamesAndShapes) {
  UNet net(UNetOptions{}, 1);
  EXPECT_EQ(testing::layout_of(net->named_parameters()), (Layout{64, 31037698, 0x3c9976c89bfc252f}));
  EXPECT_EQ(testing::layout_of(net->named_buffers()), (Layout{54, 11794, 0xb4610a11a8d85fc6}));
  const auto parameters = net->named_parameters();
  EXPECT_EQ(parameters["inc.double_conv.3.weight"].sizes(), at::IntArrayRef({64, 64, 3, 3}));
  EXPECT_EQ(parameters["down4.maxpool_conv.1.double_conv.0.weight"].sizes(), at::IntArrayRef({1024, 512, 3, 3}));
  EXPECT_EQ(parameters["up1.up.weight"].sizes(), at::IntArrayRef({1024, 512, 2, 2}));
  EXPECT_EQ(parameters["outc.conv.bias"].sizes(), at::IntArrayRef({2}));
}

TEST(UNet, WeightsAreAPureFunctionOfTheSeed) {
  testing::expect_pure([](uint64_t seed) { return UNet(UNetOptions{}, seed); });
  const auto parameters = UNet(UNetOptions{}, 1)->named_parameters();
  EXPECT_NEAR(parameters["up1.up.weight"].abs().max().item().toDouble(), 1 / std::sqrt(2048.0), 1e-4);
  EXPECT_NEAR(parameters["up1.up.bias"].abs().max().item().toDouble(), 1 / std::sqrt(2048.0), 1e-3);
}

TEST(UNet, HasPytorchUNetsNamesAndShapesWithBilinearUpsampling) {
  UNet net(UNetOptions{.classes = 1, .bilinear = true}, 1);
  EXPECT_EQ(testing::layout_of(net->named_parameters()), (Layout{56, 17262977, 0xb63c6591bc43c343}));
}

at::Tensor double_conv(const PlainLayers& plain, const std::string& name, const at::Tensor& x) {
  const at::Tensor middle = at::relu(plain.norm(name + ".1", plain.conv(name + ".0", x)));
  return at::relu(plain.norm(name + ".4", plain.conv(name + ".3", middle)));
}

at::Tensor definition(const PlainLayers& plain, const at::Tensor& images) {
  std::vector<at::Tensor> skips = {double_conv(plain, "inc.double_conv", images)};
  for (int level = 1; level <= 4; ++level) {
    skips.push_back(double_conv(plain, "down" + std::to_string(level) + ".maxpool_conv.1.double_conv",
                                at::max_pool2d(skips.back(), {2, 2})));
  }
  at::Tensor x = skips[4];
  for (int level = 1; level <= 4; ++level) {
    const std::string name = "up" + std::to_string(level);
    const at::Tensor skip = skips[static_cast<size_t>(4 - level)];
    const at::Tensor up = plain.weight(name + ".up");
    x = up.defined() ? at::conv_transpose2d(x, up, plain.bias(name + ".up"), 2)
                     : at::upsample_bilinear2d(x, {2 * x.size(2), 2 * x.size(3)}, true);
    const int64_t rows = skip.size(2) - x.size(2), columns = skip.size(3) - x.size(3);
    x = at::constant_pad_nd(x, {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
    x = double_conv(plain, name + ".conv.double_conv", at::cat({skip, x}, 1));
  }
  return plain.conv("outc.conv", x);
}

TEST(UNet, ComputesItsDefinition) {
  at::manual_seed(1);
  UNet net(UNetOptions{}, 1);
  testing::expect_definition(net, at::randn({2, 3, 32, 48}), definition);
}

TEST(UNet, PadsSidesThatAreNoMultipleOfSixteen) {
  at::manual_seed(2);
  UNet net(UNetOptions{.in_channels = 1, .classes = 3}, 1);
  testing::expect_definition(net, at::randn({3, 1, 21, 35}), definition);
}

TEST(UNet, UpsamplesByInterpolation) {
  at::manual_seed(4);
  UNet net(UNetOptions{.classes = 1, .width = 8, .bilinear = true}, 1);
  testing::expect_definition(net, at::randn({2, 3, 21, 48}), definition);
}

TEST(UNet, OfAnotherWidth) {
  at::manual_seed(3);
  UNet net(UNetOptions{.width = 3}, 1);
  EXPECT_EQ(net->named_parameters()["down4.maxpool_conv.1.double_conv.0.weight"].sizes(),
            at::IntArrayRef({48, 24, 3, 3}));
  testing::expect_definition(net, at::randn({2, 3, 16, 32}), definition);
}

TEST(UNet, RefusesWhatCannotBe) {
  EXPECT_THROW(UNet(UNetOptions{.width = 0}, 1), ConfigError);
  EXPECT_THROW(UNet(UNetOptions{.in_channels = 0}, 1), ConfigError);
  EXPECT_THROW(UNet(UNetOptions{.classes = 0}, 1), ConfigError);
  UNet net(UNetOptions{}, 1);
  EXPECT_THROW(net->forward(at::rand({1, 1, 32, 32})), DataError);
  EXPECT_THROW(net->forward(at::rand({1, 3, 15, 32})), DataError);
  EXPECT_THROW(net->forward(at::rand({3, 32, 32})), DataError);
}

}  // namespace
}  // namespace lockstep::models
