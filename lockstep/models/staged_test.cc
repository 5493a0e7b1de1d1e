#include "lockstep/nn/staged.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/models/alexnet.h"
#include "lockstep/models/igcv3.h"
#include "lockstep/models/lenet.h"
#include "lockstep/models/mobilenet_v2.h"
#include "lockstep/models/resnet.h"
#include "lockstep/models/shufflenet_v2.h"
#include "lockstep/models/unet.h"

namespace lockstep::models {
namespace {

// Cuts a network in two before each layer: together the stages have its parameters under its names, and its outputs.
template <typename Net>
void expect_whole(Net& net, const at::Tensor& images) {
  net->eval();
  const c10::InferenceMode inference;
  const size_t layers = net->layers().size();
  const at::Tensor expected = net->forward(images);
  std::set<std::string> names;
  for (const auto& parameter : net->named_parameters()) names.insert(parameter.key());
  for (const auto& buffer : net->named_buffers()) names.insert(buffer.key());
  for (size_t cut = 1; cut < layers; ++cut) {
    nn::Stage first(*net, net->layers(), 0, cut), second(*net, net->layers(), cut, layers);
    std::multiset<std::string> found;
    for (nn::Stage* stage : {&first, &second}) {
      for (const auto& parameter : stage->named_parameters()) {
        found.insert(parameter.key());
        EXPECT_TRUE(net->named_parameters()[parameter.key()].is_same(parameter.value())) << parameter.key();
      }
      for (const auto& buffer : stage->named_buffers()) found.insert(buffer.key());
    }
    EXPECT_EQ(found, std::multiset<std::string>(names.begin(), names.end())) << "cut before " << cut;
    const nn::Tensors outputs = second.forward(first.forward({images}));
    ASSERT_EQ(outputs.size(), 1U);
    EXPECT_TRUE(outputs[0].equal(expected)) << "cut before " << cut;
  }
}

TEST(Stage, NetworksInTwoAreWhole) {
  at::manual_seed(1);
  LeNet lenet(LeNetOptions{}, 1);
  expect_whole(lenet, at::rand({2, 1, 28, 28}));
  ResNet18 resnet(ResNetOptions{.classes = 4}, 1);
  expect_whole(resnet, at::rand({2, 3, 32, 32}));
  UNet unet(UNetOptions{.in_channels = 3, .classes = 2, .width = 4}, 1);
  expect_whole(unet, at::rand({1, 3, 32, 32}));
  MobileNetV2 mobilenet(MobileNetV2Options{.classes = 4}, 1);
  expect_whole(mobilenet, at::rand({2, 3, 32, 32}));
  ShuffleNetV2 shufflenet(ShuffleNetV2Options{.classes = 4}, 1);
  expect_whole(shufflenet, at::rand({2, 3, 32, 32}));
  Igcv3 igcv(Igcv3Options{.classes = 4}, 1);
  expect_whole(igcv, at::rand({2, 3, 32, 32}));
  AlexNet alexnet(AlexNetOptions{.classes = 4}, 1);
  expect_whole(alexnet, at::rand({1, 3, 64, 64}));
}

TEST(Stage, OfLayersThatAreNotThereIsRefused) {
  LeNet net(LeNetOptions{}, 1);
  EXPECT_THROW(nn::Stage(*net, net->layers(), 1, 1), ConfigError);
  EXPECT_THROW(nn::Stage(*net, net->layers(), 0, 4), ConfigError);
  LeNet other(LeNetOptions{}, 1);
  EXPECT_THROW(nn::Stage(*net, other->layers(), 0, 2), BugError);
}

}  // namespace
}  // namespace lockstep::models
