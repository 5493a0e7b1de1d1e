#include "lockstep/models/shufflenet_v2.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/models/testing/networks.h"

namespace lockstep::models {
namespace {

using testing::Layout;
using testing::PlainLayers;

TEST(ShuffleNetV2, HasTorchvisionsNamesAndShapes) {
  ShuffleNetV2 net(ShuffleNetV2Options{}, 1);
  EXPECT_EQ(testing::layout_of(net->named_parameters()), (Layout{170, 2278604, 0x321d77d4baf8149d}));
  EXPECT_EQ(testing::layout_of(net->named_buffers()), (Layout{168, 16236, 0x42221d731ea196db}));
  const auto parameters = net->named_parameters();
  EXPECT_EQ(parameters["stage2.0.branch1.2.weight"].sizes(), at::IntArrayRef({58, 24, 1, 1}));
  EXPECT_EQ(parameters["stage4.3.branch2.3.weight"].sizes(), at::IntArrayRef({232, 1, 3, 3}));
}

TEST(ShuffleNetV2, WeightsAreAPureFunctionOfTheSeed) {
  testing::expect_pure([](uint64_t seed) { return ShuffleNetV2(ShuffleNetV2Options{.classes = 10}, seed); });
  const auto parameters = ShuffleNetV2(ShuffleNetV2Options{}, 1)->named_parameters();
  EXPECT_NEAR(parameters["conv5.0.weight"].abs().max().item<double>(), 1 / std::sqrt(464.0), 1e-4);
  EXPECT_NEAR(parameters["fc.bias"].abs().max().item<double>(), 1 / std::sqrt(1024.0), 1e-3);
}

at::Tensor conv_norm(const PlainLayers& plain, const std::string& conv, const std::string& norm, const at::Tensor& x,
                     int64_t stride = 1, int64_t groups = 1) {
  return plain.norm(norm, plain.conv(conv, x, stride, groups));
}

at::Tensor unit(const PlainLayers& plain, const std::string& name, const at::Tensor& x, int64_t stride) {
  const std::string b1 = name + ".branch1.", b2 = name + ".branch2.";
  at::Tensor beside = x.narrow(1, 0, x.size(1) / 2), y = x.narrow(1, x.size(1) / 2, x.size(1) / 2);
  if (stride == 2) {
    y = x;
    beside = conv_norm(plain, b1 + "0", b1 + "1", x, 2, x.size(1));
    beside = at::relu(conv_norm(plain, b1 + "2", b1 + "3", beside));
  }
  y = at::relu(conv_norm(plain, b2 + "0", b2 + "1", y));
  y = conv_norm(plain, b2 + "3", b2 + "4", y, stride, y.size(1));
  y = at::relu(conv_norm(plain, b2 + "5", b2 + "6", y));
  return at::stack({beside, y}, 2).flatten(1, 2);
}

at::Tensor definition(const PlainLayers& plain, const at::Tensor& images) {
  at::Tensor x = at::relu(conv_norm(plain, "conv1.0", "conv1.1", images, 2));
  x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  for (int stage = 2; stage <= 4; ++stage) {
    for (int number = 0; number < (stage == 3 ? 8 : 4); ++number) {
      x = unit(plain, cat("stage", stage, '.', number), x, number == 0 ? 2 : 1);
    }
  }
  x = at::relu(conv_norm(plain, "conv5.0", "conv5.1", x));
  return at::linear(x.mean({2, 3}), plain.weight("fc"), plain.bias("fc"));
}

TEST(ShuffleNetV2, ComputesItsDefinition) {
  at::manual_seed(1);
  ShuffleNetV2 net(ShuffleNetV2Options{.classes = 10}, 1);
  testing::expect_definition(net, at::randn({4, 3, 96, 96}), definition);
}

TEST(ShuffleNetV2, TakesOtherSizes) {
  ShuffleNetV2 net(ShuffleNetV2Options{.classes = 3}, 1);
  EXPECT_EQ(net->forward(at::rand({2, 3, 37, 50})).sizes(), at::IntArrayRef({2, 3}));
}

TEST(ShuffleNetV2, RefusesWhatCannotBe) {
  EXPECT_THROW(ShuffleNetV2(ShuffleNetV2Options{.classes = 0}, 1), ConfigError);
  ShuffleNetV2 net(ShuffleNetV2Options{}, 1);
  EXPECT_THROW(net->forward(at::rand({1, 1, 32, 32})), DataError);
  EXPECT_THROW(net->forward(at::rand({3, 32, 32})), DataError);
}

}  // namespace
}  // namespace lockstep::models
