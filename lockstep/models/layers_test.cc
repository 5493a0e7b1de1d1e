#include "lockstep/models/layers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/nn/staged.h"

namespace lockstep::models {
namespace {

TEST(Layers, CheckOptionsAndImages) {
  EXPECT_EQ(checked_option("Net", "classes", 7, 7), 7);
  EXPECT_THROW(checked_option("Net", "classes", 8, 7), ConfigError);
  EXPECT_THROW(checked_option("Net", "classes", 0, 7), ConfigError);
  check_images("Net", at::zeros({0, 3, 5, 4}), 3, 4);
  EXPECT_THROW(check_images("Net", at::zeros({1, 3, 5, 4}), 3, 5), DataError);
  EXPECT_THROW(check_images("Net", at::zeros({1, 1, 5, 4}), 3), DataError);
  EXPECT_THROW(check_images("Net", at::zeros({3, 5, 4}), 3), DataError);
}

TEST(Layers, ConvolutionsKeepTheSizeOrDivideIt) {
  for (const int64_t kernel : {1, 3, 7}) {
    EXPECT_EQ(convolution(4, 6, kernel)->forward(at::zeros({1, 4, 8, 10})).sizes(), at::IntArrayRef({1, 6, 8, 10}));
    EXPECT_EQ(convolution(4, 8, kernel, 2, 4)->forward(at::zeros({1, 4, 8, 10})).sizes(),
              at::IntArrayRef({1, 8, 4, 5}));
  }
}

TEST(Layers, ShuffledChannelsAreInterleaved) {
  const at::Tensor x = at::arange(24).view({1, 6, 2, 2}).to(at::kFloat);
  const at::Tensor wanted = x.index_select(1, at::tensor({0, 3, 1, 4, 2, 5}, at::kLong));
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor shuffled = shuffle_channels(x.contiguous(format), 2);
    EXPECT_TRUE(at::equal(shuffled, wanted)) << format;
    EXPECT_TRUE(shuffled.is_contiguous(format));
    EXPECT_TRUE(at::equal(shuffle_channels(shuffled, 3), x)) << "undone";
  }
  EXPECT_THROW(shuffle_channels(x, 4), BugError);
}

TEST(ConvNorm, NamesItsPartsByNumber) {
  torch::nn::Module parent;
  nn::add_level(parent, "features")->register_module("3", ConvNorm(4, 6, 3));
  const auto names = parent.named_parameters().keys();
  EXPECT_EQ(names, (std::vector<std::string>{"features.3.0.weight", "features.3.1.weight", "features.3.1.bias"}));
}

TEST(ConvNorm, IsItsLayers) {
  ConvNorm layer(4, 6, 3);
  const at::Tensor x = at::randn({2, 4, 5, 5}), residual = at::randn({2, 6, 5, 5});
  const at::Tensor conv = at::conv2d(x, layer->parameters()[0], {}, 1, 1);
  const at::Tensor expected = at::relu(at::batch_norm(conv, {}, {}, {}, {}, true, 0.1, 1e-5, false) + residual);
  EXPECT_TRUE(at::allclose(layer->forward(x, nn::Activation::kRelu, residual), expected, 1e-5, 1e-5));
}

}  // namespace
}  // namespace lockstep::models
