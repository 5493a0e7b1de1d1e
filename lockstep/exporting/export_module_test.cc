#include "lockstep/exporting/export_module.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/models/lenet.h"
#include "lockstep/models/mobilenet_v2.h"
#include "lockstep/models/resnet.h"
#include "lockstep/models/shufflenet_v2.h"
#include "lockstep/models/unet.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing_support::TempDir;

std::string bytes_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// Running statistics other than those of a fresh network.
template <typename Net>
void warm(Net net, const at::Tensor& images) {
  net->train();
  net->forward(images);
}

template <typename Net>
void write(Net net, const at::Tensor& example, const std::string& file, const ExportOptions& options = {}) {
  export_module(
      *net, [net](const at::Tensor& x) mutable { return net->forward(x); }, example, file, options);
}

// libtorch's copy of ONNX's checker, which infers all shapes too.
void expect_valid(const std::string& file) { EXPECT_NO_THROW(torch::jit::check_onnx_proto(bytes_of(file))) << file; }

template <typename Net>
void expect_computes(Net net, const at::Tensor& images, const std::string& file) {
  net->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor found = torch::jit::load(file).forward({images}).toTensor(), wanted = net->forward(images);
  EXPECT_TRUE(at::allclose(found, wanted, 1e-4, 1e-4)) << (found - wanted).abs().max();
}

TEST(ExportModule, WritesWhatTheNetworkComputes) {
  at::manual_seed(1);
  const TempDir dir;
  models::ResNet18 resnet(models::ResNetOptions{.classes = 5}, 1);
  const at::Tensor images = at::rand({4, 3, 32, 32});
  warm(resnet, images);
  for (const bool fold : {false, true}) {
    write(resnet, images.narrow(0, 0, 2), dir / "resnet.onnx", {.fold_batch_norm = fold});
    expect_valid(dir / "resnet.onnx");
    EXPECT_EQ(bytes_of(dir / "resnet.onnx").find("BatchNormalization") == std::string::npos, fold);
    write(resnet, images.narrow(0, 0, 2), dir / "resnet.pt", {.fold_batch_norm = fold});
    expect_computes(resnet, images, dir / "resnet.pt");
  }
  EXPECT_THAT(bytes_of(dir / "resnet.onnx"), HasSubstr("layer1.0.conv1.weight"));
}

TEST(ExportModule, TakesEveryKindOfLayerOfOurs) {
  at::manual_seed(2);
  const TempDir dir;
  const auto expect_exports = [&](auto net, const at::Tensor& images, const ExportOptions& options = {}) {
    warm(net, images);
    write(net, images, dir / "net.onnx", options);
    expect_valid(dir / "net.onnx");
    write(net, images, dir / "net.pt", options);
    expect_computes(net, at::cat({images, images}), dir / "net.pt");
  };
  expect_exports(models::LeNet(models::LeNetOptions{}, 1), at::rand({2, 1, 28, 28}));
  expect_exports(models::MobileNetV2(models::MobileNetV2Options{.classes = 3}, 1), at::rand({2, 3, 32, 32}));
  expect_exports(models::ShuffleNetV2(models::ShuffleNetV2Options{.classes = 3}, 1), at::rand({2, 3, 48, 64}),
                 {.any_size = true});
  for (const bool bilinear : {false, true}) {
    const models::UNetOptions options{.classes = 2, .width = 4, .bilinear = bilinear};
    expect_exports(models::UNet(options, 1), at::rand({1, 3, 32, 48}), {.any_size = true, .fold_batch_norm = true});
    expect_exports(models::UNet(options, 1), at::rand({1, 3, 35, 50}));
  }
}

TEST(ExportModule, LeavesTheModuleAsItWas) {
  const TempDir dir;
  models::ResNet18 net(models::ResNetOptions{.classes = 5}, 1);
  net->train();
  net->named_modules()["bn1"]->eval();
  std::vector<at::Tensor> before;
  for (const auto& p : net->parameters()) before.push_back(p.detach().clone());
  write(net, at::rand({1, 3, 32, 32}), dir / "net.pt", {.fold_batch_norm = true});
  EXPECT_TRUE(net->is_training());
  EXPECT_FALSE(net->named_modules()["bn1"]->is_training());
  const auto after = net->parameters();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(before[i], after[i]));
  EXPECT_TRUE(after[0].requires_grad());
}

// A channels_last network takes other ways through our layers, and their kernels are not recorded.
TEST(ExportModule, TakesANetworkInChannelsLast) {
  at::manual_seed(3);
  const TempDir dir;
  models::MobileNetV2 net(models::MobileNetV2Options{.classes = 3}, 1);
  for (auto& p : net->parameters()) {
    if (p.dim() == 4) p.set_data(p.contiguous(at::MemoryFormat::ChannelsLast));
  }
  write(net, at::rand({2, 3, 64, 64}), dir / "net.onnx");
  expect_valid(dir / "net.onnx");
  write(net, at::rand({2, 3, 64, 64}), dir / "net.pt");
  expect_computes(net, at::rand({3, 3, 64, 64}), dir / "net.pt");
}

TEST(ExportModule, TakesSeveralInputs) {
  const TempDir dir;
  torch::nn::Linear layer(3, 2);
  export_module(*layer, [&](const std::vector<at::Tensor>& x) { return layer->forward(x[0] + 2 * x[1]).softmax(-1); },
                {at::rand({4, 3}), at::rand({4, 3})}, dir / "two.onnx", {.metadata = {{"classes", "cat, dog"}}});
  expect_valid(dir / "two.onnx");
  const std::string bytes = bytes_of(dir / "two.onnx");
  for (const char* text : {"input1", "input2", "batch", "cat, dog", "lockstep"}) EXPECT_THAT(bytes, HasSubstr(text));
}

template <typename Forward>
std::string refusal(const Forward& forward, const std::string& name, const ExportOptions& options = {}) {
  const TempDir dir;
  torch::nn::Linear layer(3, 2);
  try {
    export_module(*layer,
                  std::function<at::Tensor(const at::Tensor&)>([&](const at::Tensor& x) { return forward(layer, x); }),
                  at::rand({4, 3}), dir / name, options);
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
    return error.what();
  }
  return "";
}

TEST(ExportModule, RefusesWhatWouldComputeSomethingElse) {
  const auto baked = [](auto layer, const at::Tensor& x) { return layer->forward(x).view({x.size(0), 2}); };
  EXPECT_THAT(refusal(baked, "a.onnx"), HasSubstr("can't compute another batch: a size has become a number"));
  EXPECT_EQ(refusal(baked, "a.onnx", {.any_batch = false}), "");
  const auto branching = [](auto layer, const at::Tensor& x) {
    const at::Tensor y = layer->forward(x);
    return x.sum().template item<double>() > 4.1 ? y : -y;
  };
  EXPECT_THAT(refusal(branching, "a.pt"), HasSubstr("computes something else than the network for another batch"));
  const auto by_hand = [](auto layer, const at::Tensor& x) {
    at::Tensor y = at::zeros_like(x);
    std::copy_n(x.template data_ptr<float>(), x.numel(), y.template data_ptr<float>());
    return layer->forward(y);
  };
  EXPECT_THAT(refusal(by_hand, "a.pt"), HasSubstr("are not all libtorch's"));
}

TEST(ExportModule, RefusesSizesThatTheNetworkOrTheFileCannotTake) {
  const TempDir dir;
  try {
    write(models::LeNet(models::LeNetOptions{}, 1), at::rand({1, 1, 28, 28}), dir / "a.onnx", {.any_size = true});
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the network takes images of one size alone"));
  }
  // Where channels lie last, the sides are numbers of the file.
  torch::nn::Linear layer(3, 2);
  const std::function<at::Tensor(const at::Tensor&)> last = [&](const at::Tensor& x) {
    return layer->forward(x.permute({0, 2, 3, 1})).unflatten(3, {2, 1}).flatten(1, 2);
  };
  export_module(*layer, last, at::rand({1, 3, 8, 8}), dir / "a.ts", {.any_size = true});
  export_module(*layer, last, at::rand({1, 3, 8, 8}), dir / "a.onnx");
  try {
    export_module(*layer, last, at::rand({1, 3, 8, 8}), dir / "a.onnx", {.any_size = true});
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a size of the input becomes a number of the ONNX file"));
  }
}

TEST(ExportModule, NamesAnOperationWithoutATranslation) {
  const auto sorted = [](auto layer, const at::Tensor& x) { return std::get<0>(layer->forward(x).sort(1)); };
  EXPECT_THAT(refusal(sorted, "a.onnx"), HasSubstr("aten::sort has no translation"));
  EXPECT_EQ(refusal(sorted, "a.ts"), "");
}

TEST(ExportModule, RefusesNamesAndStatesThatItCannotTake) {
  const auto plain = [](auto layer, const at::Tensor& x) { return layer->forward(x); };
  EXPECT_THAT(refusal(plain, "a.bin"), HasSubstr("expected a name that ends in .onnx"));
  EXPECT_EQ(refusal(plain, "a.bin", {.format = ExportFormat::kOnnx}), "");
  const TempDir dir;
  torch::nn::Linear layer(3, 2);
  layer->to(at::kDouble);
  EXPECT_THROW(write(layer, at::rand({4, 3}, at::kDouble), dir / "a.onnx"), ConfigError);
}

}  // namespace
}  // namespace lockstep
