// The safetensors library and PyTorch beside our files: `./run test interop` has them, elsewhere these are skipped.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/env.h"
#include "lockstep/base/testing/command.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/safetensors_writer.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/models/mobilenet_v2.h"
#include "lockstep/models/resnet.h"

namespace lockstep {
namespace {

using checkpoint::Dict;
using testing::HasSubstr;
using testing_support::CommandOutput;
using testing_support::run_command;

class InteropSafetensors : public testing::Test {
 protected:
  void SetUp() override {
    if (run_command(cat(python_, " -c 'import torch, torchvision, safetensors.torch' 2>&1")).status != 0) {
      GTEST_SKIP() << python_ << " has no torch, torchvision and safetensors; name one in LOCKSTEP_PYTORCH_PYTHON";
    }
  }
  // Runs safetensors_files.py, which must end well.
  void run_python(const std::string& words) const {
    const CommandOutput output =
        run_command(cat(python_, " " LOCKSTEP_SOURCE_DIR "/tests/interop/safetensors_files.py ", words, " 2>&1"));
    EXPECT_EQ(output.status, 0) << output.text;
  }
  void convert(const std::string& words) const {
    const CommandOutput output = run_command(cat(LOCKSTEP_BIN_DIR "/lockstep convert ", words, " 2>&1"));
    EXPECT_EQ(output.status, 0) << output.text;
  }

  std::string python_ = env("LOCKSTEP_PYTORCH_PYTHON").value_or("python3");
  testing_support::TempDir folder_;
};

// It reads the tensors of ours, and writes them as the same file, byte for byte.
TEST_F(InteropSafetensors, TheLibraryReadsOursAndWritesTheSame) {
  Dict tensors;
  for (const at::ScalarType dtype :
       {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kFloat8_e4m3fnuz,
        at::kFloat8_e5m2fnuz, at::kLong, at::kInt, at::kShort, at::kChar, at::kByte, at::kBool, at::kUInt16,
        at::kUInt32, at::kUInt64, at::kComplexFloat}) {
    tensors.set(cat("of.", c10::toString(dtype)), at::arange(6, at::kFloat).view({2, 3}).to(dtype));
  }
  tensors.set("scalar \"\u00e9\"", at::ones({}));
  tensors.set("empty", at::ones({0, 3}));
  checkpoint::write_safetensors(tensors, folder_ / "ours.safetensors");
  run_python(cat("rewrite ", folder_ / "ours.safetensors"));
}

TEST_F(InteropSafetensors, WeReadTheLibrarysFilesWholeAndSharded) {
  run_python(cat("write ", folder_.path()));
  const checkpoint::Value expected = checkpoint::read_checkpoint(folder_ / "expected.pt");
  for (const char* name : {"one", "sharded"}) {
    const checkpoint::Value read = checkpoint::read_checkpoint(folder_ / name);
    for (const auto& [key, value] : *expected.get_if<Dict>()) {
      const auto* found = read.get_if<Dict>()->find(key);
      ASSERT_NE(found, nullptr) << checkpoint::key_text(key);
      EXPECT_EQ(checkpoint::describe(*found).dump(), checkpoint::describe(value).dump()) << checkpoint::key_text(key);
    }
  }
}

// Of a checkpoint with more than weights: as safetensors and as a .pt, from each other.
TEST_F(InteropSafetensors, TorchvisionsNetworksTakeConvertedFiles) {
  at::manual_seed(1);
  const auto save = [&](const std::string& name, const torch::nn::Module& net) {
    Dict model;
    for (const auto& [key, tensor] : checkpoint::named_state(net)) model.set("module." + key, tensor);
    checkpoint::write_pt(Dict{{"epoch", 1}, {"model", model}}, folder_ / (name + ".pt"));
    const std::string converted = folder_ / (name + ".safetensors"), back = folder_ / (name + ".back.pt");
    convert(cat(folder_ / (name + ".pt"), ' ', converted, " --strip-prefix module."));
    convert(cat(converted, ' ', back));
    run_python(cat("load ", name, ' ', folder_ / (name + ".pt"), ' ', converted, ' ', back));
  };
  save("resnet18", *models::ResNet18(models::ResNetOptions{}, 1));
  save("mobilenet_v2", *models::MobileNetV2(models::MobileNetV2Options{}, 1));
}

}  // namespace
}  // namespace lockstep
