// lockstep convert, and weights in other formats as train and eval take them; hostile files as inspect refuses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string checkpoint() { return finished_run() + "/checkpoints/last.pt"; }

nlohmann::json inspected(const std::string& path) {
  const auto result = lockstep({"inspect", path, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
}

TEST(Convert, WritesSafetensorsAndNamesWhatIsLeftOut) {
  const TempDir dir;
  const auto result = lockstep({"convert", finished_run(), dir / "lenet.safetensors"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("lenet.safetensors: written from " + finished_run()));
  EXPECT_THAT(result.out, HasSubstr("took the state dict under model\n"));
  EXPECT_THAT(result.out, HasSubstr("left out: optimizer, amp, scheduler, sampler, rng, meta\n"));
  ASSERT_EQ(lockstep({"convert", dir / "lenet.safetensors", dir / "back.pth"}).exit_code, 0);
  const auto whole = inspected(checkpoint()), weights = inspected(dir / "lenet.safetensors"),
             back = inspected(dir / "back.pth");
  EXPECT_EQ(weights.at("__metadata__/format").at("value"), "pt");
  EXPECT_EQ(back.size(), 6u);
  for (const auto& [name, leaf] : back.items()) {
    EXPECT_EQ(leaf, whole.at("model/" + name)) << name;
    EXPECT_EQ(leaf, weights.at(name)) << name;
  }
}

TEST(Convert, WhatItWritesIsTrainedAndEvaluated) {
  const TempDir dir;
  fs::create_directory(dir / "model");
  ASSERT_EQ(lockstep({"convert", checkpoint(), dir / "model/lenet.safetensors"}).exit_code, 0);
  const auto eval =
      lockstep({"eval", "mnist", "--data", digits_folder(), "--load", dir / "model", "--threads", "1", "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(nlohmann::json::parse(eval.out).at("loss"), final_of(finished_run()).at("loss"));
  const auto train = lockstep(train_words({"--load", dir / "model", "--steps", "1", "--out", dir / "run"}));
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(train.out, HasSubstr("  weights     " + dir / "model"));
}

TEST(Convert, ThroughPaddlesFormatAndBackNothingIsLost) {
  const TempDir dir;
  const auto there = lockstep({"convert", finished_run(), dir / "lenet.pdparams"});
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_THAT(there.out, HasSubstr("in Paddle's names and layouts; 1 weights"));
  ASSERT_EQ(lockstep({"convert", dir / "lenet.pdparams", dir / "back.pt"}).exit_code, 0);
  const auto whole = inspected(checkpoint()), back = inspected(dir / "back.pt");
  EXPECT_EQ(back.size(), 6u);
  for (const auto& [name, leaf] : back.items()) EXPECT_EQ(leaf, whole.at("model/" + name)) << name;
  const auto eval = lockstep(
      {"eval", "mnist", "--data", digits_folder(), "--load", dir / "lenet.pdparams", "--threads", "1", "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(nlohmann::json::parse(eval.out).at("loss"), final_of(finished_run()).at("loss"));
}

TEST(Convert, AnOptimizersStateThroughPaddlesFormatAndBack) {
  const TempDir dir;
  const std::string params = LOCKSTEP_SOURCE_DIR "/tests/fixtures/paddle/lenet.pdparams";  // by paddle.save
  const std::string state = dir / "lenet.pdopt", back = dir / "back.pt", ours = dir / "ours.pdparams";
  const auto there = lockstep({"convert", finished_run(), state, "--names", params});
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_THAT(there.out, HasSubstr("the state of SGD with momentum"));
  const auto both = lockstep({"convert", params, back, "--optimizer", state});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("of SGD with momentum; its hyper-parameters are Paddle's defaults"));
  ASSERT_EQ(lockstep({"convert", finished_run(), ours}).exit_code, 0);
  const auto was = inspected(checkpoint()), is = inspected(back);
  int buffers = 0;
  for (const auto& [name, leaf] : is.items()) {
    if (!name.ends_with("/momentum_buffer")) continue;
    EXPECT_EQ(leaf, was.at(name)) << name;
    ++buffers;
  }
  EXPECT_EQ(buffers, 6);
  const std::pair<Words, const char*> mistakes[] = {
      {{finished_run(), state}, "lenet.pdopt: needs --names"},
      {{finished_run(), ours, "--names", params}, "--names goes with a .pdopt"},
      {{finished_run(), state, "--names", ours}, "ours.pdparams: has no names of Paddle's"},
      {{params, ours, "--optimizer", state}, "--optimizer goes with a .pt"},
      {{params, back, "--beta1", "0.8"}, "--beta1 and --beta2 go with --optimizer"},
      {{state, back}, "lenet.pdopt: is an optimizer's state; give it as --optimizer beside its .pdparams"},
      {{params, back, "--optimizer", state, "--weights"}, "don't go with an optimizer's state"},
      {{checkpoint(), back, "--optimizer", state}, "is no file of paddle.save"},
      {{params, state, "--names", params}, "holds no optimizer's state"}};
  for (const auto& [words, text] : mistakes) {
    const auto result = lockstep(Words{"convert"} + words);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(text));
  }
}

TEST(Convert, RefusesWhatItCantDo) {
  const TempDir dir;
  const auto prefix = lockstep({"convert", checkpoint(), dir / "a.safetensors", "--strip-prefix", "net."});
  EXPECT_EQ(prefix.exit_code, 2);
  EXPECT_THAT(prefix.err, HasSubstr("no name begins with net.; the first is conv1.weight"));
  EXPECT_FALSE(fs::exists(dir / "a.safetensors"));
  EXPECT_EQ(lockstep({"convert", checkpoint(), dir / "a.onnx"}).exit_code, 2);
  EXPECT_EQ(lockstep({"convert", dir / "none.pt", dir / "a.pt"}).exit_code, 2);
  EXPECT_EQ(lockstep({"convert", checkpoint(), dir / "no/a.pt"}).exit_code, 74);
}

// A prefix that all names have is dropped by itself where the model's have none, and the header says so.
TEST(Load, SaysWhichPrefixItDropped) {
  const TempDir dir;
  const std::string file = LOCKSTEP_SOURCE_DIR "/tests/fixtures/checkpoints/lenet_ddp_module_prefix.pt";
  const auto train = lockstep(train_words({"--load", file, "--steps", "1", "--out", dir / "run"}));
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(train.out, HasSubstr("  weights     " + file + ", the names without module.\n"));
  const auto other =
      lockstep(train_words({"--load", LOCKSTEP_SOURCE_DIR "/tests/fixtures/checkpoints/unet_mask_values.pt", "--steps",
                            "1", "--out", dir / "other"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("a checkpoint of another model: "));
  EXPECT_THAT(other.err, HasSubstr("the file lacks conv1.weight [20, 1, 5, 5]"));
}

// Each in one line, with 65, within a second of a machine with nothing else to do, and in little memory.
TEST(Hostile, FilesAreRefused) {
  const TempDir dir;
  const auto good = lockstep({"inspect", LOCKSTEP_SOURCE_DIR "/tests/fixtures/checkpoints/dtypes.pt"});
  ASSERT_EQ(good.exit_code, 0) << good.err;
  std::vector<fs::directory_entry> entries;
  const std::string source = LOCKSTEP_SOURCE_DIR;
  size_t number = 0;  // all are read by checkpoint/formats' tests, in one process
  for (const auto& entry : fs::directory_iterator(source + "/tests/fixtures/hostile")) {
    if (number++ % 3 == 0) entries.push_back(entry);
  }
  std::error_code not_there;
  for (const auto& entry : fs::directory_iterator(source + "/../shared/fixtures/hostile", not_there)) {
    entries.push_back(entry);
  }
  for (const auto& entry : entries) {
    const std::string path = entry.path().string();
    const auto result = lockstep({"inspect", path}, dir.path());
    EXPECT_EQ(result.exit_code, 65) << path << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(entry.path().filename().string() + ": "));
    EXPECT_LT(result.seconds, 20) << path;
    EXPECT_LT(result.peak_mb, good.peak_mb + 256 + static_cast<double>(entry.file_size()) / 1e6) << path;
  }
  EXPECT_GT(entries.size(), 25u);
  EXPECT_TRUE(fs::is_empty(dir.path())) << "something was executed";
}

}  // namespace
}  // namespace lockstep::e2e
