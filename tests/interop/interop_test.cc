// Real PyTorch beside Lockstep: `./run test interop` has it, elsewhere these are skipped.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lockstep/base/env.h"
#include "lockstep/base/testing/command.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/checkpoint/load_model.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/models/alexnet.h"
#include "lockstep/models/lenet.h"
#include "lockstep/models/mobilenet_v2.h"
#include "lockstep/models/resnet.h"
#include "lockstep/models/shufflenet_v2.h"
#include "lockstep/models/unet.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing_support::CommandOutput;
using testing_support::run_command;

const std::string kFolder = LOCKSTEP_SOURCE_DIR "/tests/interop";

// With what it says on standard error.
CommandOutput run(const std::string& command) { return run_command(command + " 2>&1"); }

class Interop : public testing::Test {
 protected:
  void SetUp() override {
    if (run(python_ + " -c 'import torch, torchvision'").status != 0) {
      GTEST_SKIP() << python_ << " has no torch and torchvision; name one that has in LOCKSTEP_PYTORCH_PYTHON";
    }
  }

  // Saves the network and what it computes in eval mode; returns the file.
  template <typename Net>
  std::string saved(const std::string& name, Net net, const at::Tensor& images) const {
    // Statistics that are not those of a fresh network.
    net->train();
    net->forward(images);
    net->eval();
    checkpoint::Dict model;
    for (const auto& [key, tensor] : checkpoint::named_state(*net)) model.set(key, tensor.detach());
    const at::Tensor output = net->forward(images).detach();
    const std::string file = folder_ / (name + ".pt");
    checkpoint::write_pt(
        checkpoint::Dict{{"name", name}, {"model", model}, {"images", images}, {"output", output.contiguous()}}, file);
    return file;
  }

  // Loads the weights that PyTorch made, and compares what both compute of its images.
  template <typename Net>
  void expect_taken(const std::string& name, Net net) const {
    const std::string file = folder_ / "theirs.pt";
    const CommandOutput output = run(cat(python_, ' ', kFolder, "/networks.py make ", name, ' ', file));
    ASSERT_EQ(output.status, 0) << output.text;
    const checkpoint::Value root = checkpoint::open_checkpoint(file);
    checkpoint::load_model(*net, root, {.file = file});
    net->eval();
    const checkpoint::ValueView view(root, file);
    const at::Tensor theirs = view["output"].tensor(), ours = net->forward(view["images"].tensor()).detach();
    EXPECT_LT(((ours - theirs).norm() / theirs.norm()).template item<double>(), 1e-5) << name;
  }

  std::string python_ = env("LOCKSTEP_PYTORCH_PYTHON").value_or("python3");
  testing_support::TempDir folder_;
};

TEST_F(Interop, TorchvisionsAndPytorchUNetsNetworksTakeOurWeightsAndComputeTheSame) {
  at::manual_seed(1);
  const at::Tensor images = at::rand({2, 3, 64, 64});
  const models::ResNetOptions resnet;
  const std::map<std::string, std::string> files = {
      {"resnet18", saved("resnet18", models::ResNet18(resnet, 1), images)},
      {"resnet34", saved("resnet34", models::ResNet34(resnet, 1), images)},
      {"resnet50", saved("resnet50", models::ResNet50(resnet, 1), images)},
      {"resnet101", saved("resnet101", models::ResNet101(resnet, 1), images)},
      {"resnet152", saved("resnet152", models::ResNet152(resnet, 1), images)},
      {"mobilenet_v2", saved("mobilenet_v2", models::MobileNetV2(models::MobileNetV2Options{}, 1), images)},
      {"shufflenet_v2", saved("shufflenet_v2", models::ShuffleNetV2(models::ShuffleNetV2Options{}, 1), images)},
      {"alexnet", saved("alexnet", models::AlexNet(models::AlexNetOptions{}, 1), images)},
      {"unet", saved("unet", models::UNet(models::UNetOptions{}, 1), images)},
      {"unet_bilinear", saved("unet_bilinear", models::UNet(models::UNetOptions{.bilinear = true}, 1), images)},
      {"lenet", saved("lenet", models::LeNet(models::LeNetOptions{}, 1), at::rand({2, 1, 28, 28}))}};
  std::string command = cat(python_, ' ', kFolder, "/networks.py");
  for (const auto& [name, file] : files) command += ' ' + file;
  const CommandOutput output = run(command);
  EXPECT_EQ(output.status, 0) << output.text;
  for (const auto& [name, file] : files) EXPECT_THAT(output.text, HasSubstr(name + ": "));
}

TEST_F(Interop, OurNetworksTakeTheirWeightsAndComputeTheSame) {
  const models::ResNetOptions resnet;
  expect_taken("resnet18", models::ResNet18(resnet, 1));
  expect_taken("resnet34", models::ResNet34(resnet, 1));
  expect_taken("resnet50", models::ResNet50(resnet, 1));
  expect_taken("resnet101", models::ResNet101(resnet, 1));
  expect_taken("resnet152", models::ResNet152(resnet, 1));
  expect_taken("mobilenet_v2", models::MobileNetV2(models::MobileNetV2Options{}, 1));
  expect_taken("shufflenet_v2", models::ShuffleNetV2(models::ShuffleNetV2Options{}, 1));
  expect_taken("alexnet", models::AlexNet(models::AlexNetOptions{}, 1));
  expect_taken("unet", models::UNet(models::UNetOptions{}, 1));
  expect_taken("unet_bilinear", models::UNet(models::UNetOptions{.bilinear = true}, 1));
  expect_taken("lenet", models::LeNet(models::LeNetOptions{}, 1));
}

// Ours and PyTorch's, as on a GPU.
TEST_F(Interop, TheBenchOfGpusRunsOnACpu) {
  const CommandOutput output =
      run(cat("LOCKSTEP_BIN=" LOCKSTEP_BIN_DIR " LOCKSTEP_BENCH_PYTHON=", python_,
              " timeout 300 python3 " LOCKSTEP_SOURCE_DIR "/bench/run gpu --rehearse --rounds 1"));
  EXPECT_EQ(output.status, 0) << output.text;
  for (const char* level : {"resnet18       O0", "resnet18       O1 deterministic", "resnet18       O3"}) {
    EXPECT_THAT(output.text, HasSubstr(level));
  }
  EXPECT_THAT(output.text, HasSubstr("PyTorch 2."));
  EXPECT_THAT(output.text, testing::Not(HasSubstr("left out: PyTorch")));
}

TEST_F(Interop, LockstepLaunchStartsAPyTorchProgram) {
  const CommandOutput output =
      run(cat("timeout 100 " LOCKSTEP_BIN_DIR "/lockstep launch --nproc 2 ", python_, ' ', kFolder, "/ddp.py"));
  EXPECT_EQ(output.status, 0) << output.text;
  EXPECT_THAT(output.text, HasSubstr("rank 0 of 2, local 0: 3.0 1.0"));
  EXPECT_THAT(output.text, HasSubstr("rank 1 of 2, local 1: 3.0 1.0"));
}

}  // namespace
}  // namespace lockstep
