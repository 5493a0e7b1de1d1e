// Real PyTorch beside Lockstep: `./run test interop` has it, elsewhere these are skipped.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/models/lenet.h"
#include "lockstep/models/mobilenet_v2.h"
#include "lockstep/models/resnet.h"
#include "lockstep/models/unet.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

const std::string kFolder = LOCKSTEP_SOURCE_DIR "/tests/interop";

struct Output {
  int status = -1;
  std::string text;  // of both streams
};

Output run(const std::string& command) {
  Output output;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> buffer{};
  while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) output.text.append(buffer.data(), count);
  output.status = WEXITSTATUS(pclose(pipe));
  return output;
}

class Interop : public testing::Test {
 protected:
  void SetUp() override {
    if (run(python_ + " -c 'import torch, torchvision'").status != 0) {
      GTEST_SKIP() << python_ << " has no torch and torchvision; name one that has in LOCKSTEP_PYTORCH_PYTHON";
    }
    folder_ = testing::TempDir() + "/interop";
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
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
    const std::string file = cat(folder_, '/', name, ".pt");
    checkpoint::write_pt(
        checkpoint::Dict{{"name", name}, {"model", model}, {"images", images}, {"output", output.contiguous()}}, file);
    return file;
  }

  std::string python_ = env("LOCKSTEP_PYTORCH_PYTHON").value_or("python3");
  std::string folder_;
};

TEST_F(Interop, TorchvisionsAndPytorchUNetsNetworksTakeOurWeightsAndComputeTheSame) {
  at::manual_seed(1);
  const at::Tensor images = at::rand({2, 3, 64, 64});
  const std::string files = cat(saved("resnet18", models::ResNet18(models::ResNetOptions{}, 1), images), ' ',
                                saved("mobilenet_v2", models::MobileNetV2(models::MobileNetV2Options{}, 1), images),
                                ' ', saved("unet", models::UNet(models::UNetOptions{}, 1), images), ' ',
                                saved("lenet", models::LeNet(models::LeNetOptions{}, 1), at::rand({2, 1, 28, 28})));
  const Output output = run(cat(python_, ' ', kFolder, "/networks.py ", files));
  EXPECT_EQ(output.status, 0) << output.text;
  for (const char* name : {"resnet18", "mobilenet_v2", "unet", "lenet"}) EXPECT_THAT(output.text, HasSubstr(name));
}

TEST_F(Interop, LockstepLaunchStartsAPyTorchProgram) {
  const Output output =
      run(cat("timeout 100 " LOCKSTEP_BIN_DIR "/lockstep launch --nproc 2 ", python_, ' ', kFolder, "/ddp.py"));
  EXPECT_EQ(output.status, 0) << output.text;
  EXPECT_THAT(output.text, HasSubstr("rank 0 of 2, local 0: 3.0 1.0"));
  EXPECT_THAT(output.text, HasSubstr("rank 1 of 2, local 1: 3.0 1.0"));
}

}  // namespace
}  // namespace lockstep
