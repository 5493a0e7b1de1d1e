// Files of real PyTorch, of every pickle protocol, form and dtype, and ours read by it: `./run test interop` has it,
// elsewhere these are skipped.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/base/env.h"
#include "lockstep/base/testing/command.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/paddle_writer.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using checkpoint::describe;
using checkpoint::read_checkpoint;
using checkpoint::testing_support::error_of;
using checkpoint::testing_support::read_file;
using testing::HasSubstr;
using testing_support::run_command;

class InteropPickles : public testing::Test {
 protected:
  void SetUp() override {
    if (run_command(python_ + " -c 'import torch, numpy' 2>/dev/null").status != 0) {
      GTEST_SKIP() << python_ << " has no torch and numpy; name one that has in LOCKSTEP_PYTORCH_PYTHON";
    }
  }
  std::string script(const std::string& words) const {
    const auto output =
        run_command(cat(python_, " -W ignore " LOCKSTEP_SOURCE_DIR "/tests/interop/pickles.py ", words, " 2>&1"));
    EXPECT_EQ(output.status, 0) << output.text;
    return output.text;
  }
  std::vector<std::string> written(const std::string& ending = ".pt") const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().string().ends_with(ending)) files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  static Json expected(const std::string& file) {
    return Json::parse(read_file(fs::path(file).replace_extension(".expected.json")));
  }
  // An error names the first path where the two differ.
  static void expect_equal(const Json& found, const Json& wanted, const std::string& what) {
    const Json difference = Json::diff(wanted, found);
    EXPECT_TRUE(difference.empty()) << what << ": " << difference.front().dump();
  }

  std::string python_ = env("LOCKSTEP_PYTORCH_PYTHON").value_or("python3");
  testing_support::TempDir folder_;
};

TEST_F(InteropPickles, WhatTorchSaveWritesIsReadAndWhatIsWrittenTorchLoadReads) {
  script("write " + folder_.path());
  const std::vector<std::string> files = written();
  ASSERT_EQ(files.size(), 64u);
  std::string ours;
  for (const std::string& file : files) {
    const checkpoint::Value value = read_checkpoint(file);
    expect_equal(Json::parse(describe(value).dump()), expected(file), file);
    checkpoint::write_pt(value, file + ".ours");
    ours += ' ' + file + ".ours";
  }
  const Json read = Json::parse(script("read" + ours));
  for (const std::string& file : files) expect_equal(read[file + ".ours"], expected(file), file + ".ours");
}

TEST_F(InteropPickles, UnknownClassesAreRefusedByNameOrLeavesWhereTheyAreIgnored) {
  script("refused " + folder_.path());
  const auto refusal = [&](const std::string& name) {
    return error_of<DataError>([&] { read_checkpoint(folder_ / (name + ".pt")); });
  };
  for (const auto& [name, why] : {std::pair{"sparse", "a sparse tensor"},
                                  {"quantized", "a quantized tensor"},
                                  {"meta", "a tensor of the meta device"},
                                  {"nested", "a nested tensor"},
                                  {"subclass", "global __main__.Tagged"},
                                  {"conjugate", "a tensor with metadata"}}) {
    EXPECT_THAT(refusal(name), HasSubstr(why));
  }
  for (const char* name : {"unknown2", "unknown3", "unknown4", "unknown5"}) {
    EXPECT_THAT(refusal(name), HasSubstr("global argparse.Namespace is not one that a checkpoint may name "
                                         "(--ignore-unknown reads the rest without it)"));
    const std::string file = folder_ / (name + std::string(".pt"));
    expect_equal(Json::parse(describe(read_checkpoint(file, {.ignore_unknown = true})).dump()), expected(file), file);
  }
}

// What paddle.load does first is to unpickle the file.
TEST_F(InteropPickles, PythonUnpicklesWhatIsWrittenForPaddle) {
  const checkpoint::Value value = checkpoint::Dict{{"fc.weight", at::arange(6, at::kFloat).view({2, 3})},
                                                   {"bn._mean", at::zeros({4}, at::kDouble)},
                                                   {"half", at::ones({3}, at::kHalf)},
                                                   {"steps", at::full({}, 7, at::kLong)},
                                                   {"mask", at::ones({2}, at::kBool)},
                                                   {"empty", at::zeros({0, 3})},
                                                   {"large", at::arange(1 << 15, at::kInt)},
                                                   {"LR_Scheduler", checkpoint::Dict{{"last_epoch", 3}}}};
  const std::string file = folder_ / "a.pdparams";
  checkpoint::write_paddle(value, file);
  expect_equal(Json::parse(script("unpickle " + file))[file], Json::parse(describe(read_checkpoint(file)).dump()),
               file);
}

}  // namespace
}  // namespace lockstep
