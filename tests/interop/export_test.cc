// ONNX Runtime and PyTorch compute what we export: `./run test interop` has them, elsewhere these are skipped.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <filesystem>

#include "lockstep/base/env.h"
#include "lockstep/base/testing/command.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/exporting/export_module.h"
#include "lockstep/models/alexnet.h"
#include "lockstep/models/igcv3.h"
#include "lockstep/models/lenet.h"
#include "lockstep/models/mobilenet_v2.h"
#include "lockstep/models/resnet.h"
#include "lockstep/models/shufflenet_v2.h"
#include "lockstep/models/unet.h"

namespace lockstep {
namespace {

using testing_support::CommandOutput;
using testing_support::run_command;

class InteropExport : public testing::Test {
 protected:
  void SetUp() override {
    if (run_command(cat(python_, " -c 'import torch, onnx, onnxruntime' 2>&1")).status != 0) {
      GTEST_SKIP() << python_ << " has no torch, onnx and onnxruntime; name one in LOCKSTEP_PYTORCH_PYTHON";
    }
    at::manual_seed(1);
  }

  // Has the other program compute the exported files on each of these inputs, and compare them with `forward`.
  void expect_computes(const std::string& files, const exporting::Forward& forward,
                       const std::vector<std::vector<at::Tensor>>& batches) const {
    const at::NoGradGuard no_grad;
    checkpoint::List list;
    for (const auto& inputs : batches) {
      checkpoint::List tensors;
      for (const at::Tensor& input : inputs) tensors.push_back(input);
      list.push_back(checkpoint::Dict{{"inputs", tensors}, {"output", forward(inputs).contiguous()}});
    }
    checkpoint::write_pt(list, folder_ / "batches.pt");
    const CommandOutput output = run_command(cat(python_, " " LOCKSTEP_SOURCE_DIR "/tests/interop/onnx_files.py ",
                                                 folder_ / "batches.pt", ' ', files, " 2>&1"));
    EXPECT_EQ(output.status, 0) << output.text;
  }

  // With BatchNorm as it is and folded, on batches of 1 and 5, in ONNX Runtime.
  template <typename Net>
  void expect_exports(const std::string& name, Net net, int64_t channels, int64_t side, ExportOptions options = {}) {
    SCOPED_TRACE(name);
    // Statistics that are not those of a fresh network.
    net->train();
    for (int i = 0; i < 3; ++i) net->forward(at::randn({4, channels, side, side}));
    net->eval();
    const exporting::Forward forward = [net](const std::vector<at::Tensor>& inputs) mutable {
      return net->forward(inputs.at(0));
    };
    const int64_t other = options.any_size ? side + 32 : side;
    const auto file = [&](const char* kind) { return folder_ / (name + kind + ".onnx"); };
    for (const bool fold : {false, true}) {
      options.fold_batch_norm = fold;
      export_module(*net, forward, {at::zeros({1, channels, side, side})}, file(fold ? "_folded" : ""), options);
    }
    expect_computes(cat(file(""), ' ', file("_folded")), forward,
                    {{at::randn({1, channels, side, side})}, {at::randn({5, channels, other, side})}});
    for (const char* kind : {"", "_folded"}) std::filesystem::remove(file(kind));
  }

  std::string python_ = env("LOCKSTEP_PYTORCH_PYTHON").value_or("python3");
  testing_support::TempDir folder_;
};

TEST_F(InteropExport, OnnxRuntimeComputesResNets) {
  const models::ResNetOptions options{.classes = 10};
  expect_exports("resnet18", models::ResNet18(options, 1), 3, 64);
  expect_exports("resnet34", models::ResNet34(options, 1), 3, 64);
  expect_exports("resnet50", models::ResNet50(options, 1), 3, 64);
  expect_exports("resnet101", models::ResNet101(options, 1), 3, 64);
  expect_exports("resnet152", models::ResNet152(options, 1), 3, 64);
}

TEST_F(InteropExport, OnnxRuntimeComputesMobileNetsAndAlexNet) {
  expect_exports("mobilenet_v2", models::MobileNetV2(models::MobileNetV2Options{}, 1), 3, 96, {.any_size = true});
  expect_exports("shufflenet_v2", models::ShuffleNetV2(models::ShuffleNetV2Options{}, 1), 3, 96, {.any_size = true});
  expect_exports("igcv3", models::Igcv3(models::Igcv3Options{}, 1), 3, 96, {.any_size = true});
  expect_exports("alexnet", models::AlexNet(models::AlexNetOptions{.classes = 10}, 1), 3, 224);
  expect_exports("alexnet_small", models::AlexNet(models::AlexNetOptions{.classes = 10}, 1), 3, 128);
}

TEST_F(InteropExport, OnnxRuntimeComputesUNetsAndLeNet) {
  for (const bool bilinear : {false, true}) {
    const models::UNetOptions options{.classes = 3, .width = 16, .bilinear = bilinear};
    expect_exports("unet", models::UNet(options, 1), 3, 64, {.any_size = true});
    expect_exports("unet_padded", models::UNet(options, 1), 3, 50);
  }
  expect_exports("lenet", models::LeNet(models::LeNetOptions{}, 1), 1, 28);
}

TEST_F(InteropExport, OnnxRuntimeComputesWhatTheCommandWrites) {
  models::ResNet18 net(models::ResNetOptions{.classes = 7}, 3);
  net->forward(at::randn({4, 3, 64, 64}));
  net->eval();
  checkpoint::Dict weights;
  for (const auto& [key, tensor] : checkpoint::named_state(*net)) weights.set(key, tensor.detach());
  checkpoint::write_pt(weights, folder_ / "weights.pth");
  const std::string line = cat("/lockstep export imagenet --load ", folder_ / "weights.pth ", folder_ / "net.onnx",
                               " --size 64 --fold-batch-norm");
  const CommandOutput output = run_command(LOCKSTEP_BIN_DIR + line + " 2>&1");
  ASSERT_EQ(output.status, 0) << output.text;
  EXPECT_THAT(output.text, testing::EndsWith("input [batch, 3, 64, 64]\n"));
  const exporting::Forward forward = [&](const std::vector<at::Tensor>& inputs) { return net->forward(inputs.at(0)); };
  expect_computes(folder_ / "net.onnx", forward, {{at::randn({1, 3, 64, 64})}, {at::randn({5, 3, 64, 64})}});
}

// Operations that our own networks do not have.
TEST_F(InteropExport, OnnxRuntimeComputesOtherOperations) {
  using Tensors = std::vector<at::Tensor>;
  torch::nn::Linear none(1, 1);
  const auto expect_same = [&](const char* name, const exporting::Forward& forward, const at::Tensor& input) {
    SCOPED_TRACE(name);
    export_module(*none, forward, {input}, folder_ / "op.onnx");
    expect_computes(folder_ / "op.onnx", forward, {{input}, {at::cat({input, input + 1, input})}});
  };
  const auto of = [](auto function) { return [=](const Tensors& x) { return function(x[0]); }; };
  const at::Tensor image = at::randn({2, 4, 6, 8}), rows = at::randn({2, 6});
  expect_same("activations", of([](const at::Tensor& x) {
                return x.sigmoid() + x.tanh() - at::silu(x) * at::gelu(x) / (2 + at::hardswish(x).abs());
              }),
              rows);
  expect_same("more activations", of([](const at::Tensor& x) {
                return at::leaky_relu(x, 0.2) + at::elu(x) + at::hardsigmoid(x) + x.clamp(-0.5, 0.5) + x.clamp_min(0.1);
              }),
              rows);
  expect_same("arithmetic", of([](const at::Tensor& x) {
                return at::sub((x.exp() + 1).log().sqrt(), x.pow(2), 0.5) + x.abs().neg().erf() - 3;
              }),
              rows);
  expect_same("softmax", of([](const at::Tensor& x) { return x.softmax(1) + x.log_softmax(-1); }), rows);
  expect_same("parts", of([](const at::Tensor& x) {
                const auto halves = x.chunk(2, 1);
                const auto thirds = x.split(3, 1);
                return at::cat({halves[1].relu(), halves[0], thirds[1], x.slice(1, 1, 5, 2)}, 1);
              }),
              image);
  expect_same("views", of([](const at::Tensor& x) {
                return x.view({-1, 2, 2, 6, 8}).transpose(1, 2).reshape({-1, 4, 48}).permute({0, 2, 1}).flatten(1, 2);
              }),
              image);
  expect_same("dimensions", of([](const at::Tensor& x) {
                return at::stack({x.select(1, 0), x.select(1, -1)}, 1).unsqueeze(-1).squeeze(-1).mean({2, 3}, true) +
                       x.sum({1}, true);
              }),
              image);
  expect_same("pooling", of([](const at::Tensor& x) {
                return at::cat({at::avg_pool2d(x, {3, 3}, {1, 1}, {1, 1}).flatten(1),
                                at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true).flatten(1),
                                at::adaptive_avg_pool2d(x, {4, 3}).flatten(1)},
                               1);
              }),
              image);
  expect_same("resizing", of([](const at::Tensor& x) {
                return at::cat({at::upsample_bilinear2d(x, {9, 11}, false).flatten(1),
                                at::upsample_bilinear2d(x, {9, 16}, true).flatten(1),
                                at::upsample_nearest2d(x, {12, 24}).flatten(1)},
                               1);
              }),
              image);
  expect_same("padding", of([](const at::Tensor& x) { return at::constant_pad_nd(x, {1, 2, 0, 3}, 0.5); }), image);
  expect_same("products", of([](const at::Tensor& x) { return at::matmul(x, x.transpose(2, 3)); }), image);
}

// A user's own module: several inputs, other layers, in-place operations.
struct TwoTowersImpl : torch::nn::Module {
  TwoTowersImpl()
      : words(register_module("words", torch::nn::Embedding(20, 6))),
        norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({6})))),
        up(register_module("up", torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(3, 6, 3).stride(2)))),
        image_norm(register_module("image_norm", torch::nn::BatchNorm2d(6))),
        last(register_module("last", torch::nn::Linear(6, 4))) {
    offset = register_buffer("offset", at::rand({6}));
  }
  at::Tensor forward(const at::Tensor& image, const at::Tensor& word) {
    const at::Tensor seen = image_norm->forward(up->forward(image)).relu_().mean({2, 3});
    return last->forward(norm->forward(words->forward(word)).add_(offset).unsqueeze(1) + seen.unsqueeze(1))
        .flatten(1)
        .softmax(1);
  }
  torch::nn::Embedding words;
  torch::nn::LayerNorm norm;
  torch::nn::ConvTranspose2d up;
  torch::nn::BatchNorm2d image_norm;
  torch::nn::Linear last;
  at::Tensor offset;
};
TORCH_MODULE(TwoTowers);

TEST_F(InteropExport, PyTorchLoadsAUsersOwnModule) {
  TwoTowers net;
  net->eval();
  const exporting::Forward forward = [&](const std::vector<at::Tensor>& x) { return net->forward(x[0], x[1]); };
  const auto inputs = [](int64_t batch) {
    return std::vector<at::Tensor>{at::randn({batch, 3, 8, 8}), at::randint(20, {batch}, at::kLong)};
  };
  for (const char* name : {"net.ts", "net.onnx"}) {
    export_module(*net, forward, inputs(2), folder_ / name, {.metadata = {{"classes", "four"}}});
    expect_computes(folder_ / name, forward, {inputs(1), inputs(5)});
  }
  const CommandOutput names =
      run_command(cat(python_, " -c \"import torch; files = {'classes': ''}; m = torch.jit.load('", folder_ / "net.ts",
                      "', _extra_files=files); print(sorted(m.state_dict()), files)\""));
  EXPECT_THAT(names.text, testing::AllOf(testing::HasSubstr("'image_norm.running_mean'"),
                                         testing::HasSubstr("'offset'"), testing::HasSubstr("four")))
      << names.text;
}

}  // namespace
}  // namespace lockstep
