// TensorBoard's own loader reads what a run has written for it: `./run test interop` has it, elsewhere this is skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/base/env.h"
#include "lockstep/base/testing/command.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing_support::CommandOutput;
using testing_support::run_command;

// The tests of one run, which ends after 6 steps, and then goes back to 4 and on to 5.
class InteropTensorboard : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string python = env("LOCKSTEP_PYTORCH_PYTHON").value_or("python3");
    if (run_command(cat(python, " -c 'import tensorboard, PIL' 2>&1")).status != 0) return;
    const testing_support::TempDir folder;
    const std::string run = folder / "run";
    const std::string first =
        cat("unet --size 32 --width 4 --lanes 2 --batch-size 2 --nproc 2 --threads 1 --eval-every 2 ",
            "--save-every 2 --track csv,tensorboard --validation 10 --out ", run, " --steps 6");
    const auto train = [](const std::string& words) {
      const CommandOutput output = run_command(cat(LOCKSTEP_BIN_DIR "/lockstep train ", words, " 2>&1"));
      ASSERT_EQ(output.status, 0) << output.text;
    };
    train(first);
    train(cat("--resume ", run, "/checkpoints/step-000004.pt --overwrite --steps 5 --lr 0.5"));
    std::ifstream lines(run + "/metrics.jsonl");
    for (std::string line; std::getline(lines, line);) records_->push_back(json::parse(line));
    const CommandOutput read =
        run_command(cat(python, " " LOCKSTEP_SOURCE_DIR "/tests/interop/tensorboard_files.py ", run));
    ASSERT_EQ(read.status, 0) << read.text;
    *found_ = json::parse(read.text);
  }
  static void TearDownTestSuite() {
    *found_ = json();
    records_->clear();
  }
  void SetUp() override {
    if (found_->is_null()) {
      GTEST_SKIP() << "no tensorboard and Pillow; name a Python that has them in LOCKSTEP_PYTORCH_PYTHON";
    }
  }

  static const json& of(const char* kind, const std::string& tag) { return found_->at(kind).at(tag); }
  static std::set<std::string> steps(const json& by_step) {
    std::set<std::string> all;
    for (const auto& [step, value] : by_step.items()) all.insert(step);
    return all;
  }

  static inline const std::unique_ptr<json> found_ = std::make_unique<json>();
  static inline const std::unique_ptr<std::vector<json>> records_ = std::make_unique<std::vector<json>>();
};

TEST_F(InteropTensorboard, ScalarsAreThoseOfTheRunsRecords) {
  size_t seen = 0;
  for (const json& record : *records_) {
    const std::string kind = record.at("kind"), step = cat(record.at("step").get<int64_t>());
    const std::string group = kind == "eval" ? record.at("split").get<std::string>() : kind;
    for (const char* name : {"loss", "lr", "gradient_norm", "dice", "seconds"}) {
      if (!record.contains(name)) continue;
      EXPECT_EQ(of("scalars", cat(group, '/', name)).at(step), record.at(name).get<float>()) << group << name << step;
      ++seen;
    }
  }
  EXPECT_GE(seen, 5u * 4u);
  EXPECT_EQ(steps(of("scalars", "train/loss")), (std::set<std::string>{"1", "2", "3", "4", "5"}))
      << "6 was gone back on";
  EXPECT_EQ(steps(of("scalars", "validation/dice")), (std::set<std::string>{"2", "4", "5"}));
  EXPECT_TRUE(found_->at("scalars").contains("validation/dice_per_class/1"));
}

TEST_F(InteropTensorboard, HistogramsCountAllElements) {
  ASSERT_GT(found_->at("histograms").size(), 10u);
  for (const auto& [tag, by_step] : found_->at("histograms").items()) {
    EXPECT_EQ(steps(by_step), (std::set<std::string>{"2", "4", "5"})) << tag;
    const std::string other = (tag.starts_with("weights/") ? "gradients/" : "weights/") + tag.substr(tag.find('/') + 1);
    const auto count = [&](const std::string& of_tag) {
      double all = 0;
      for (const json& bucket : of("histograms", of_tag).at("4")) {
        EXPECT_LE(bucket.at(0).get<double>(), bucket.at(1).get<double>()) << of_tag;
        all += bucket.at(2).get<double>();
      }
      return all;
    };
    EXPECT_GT(count(tag), 0) << tag;
    EXPECT_EQ(count(tag), count(other)) << tag;
  }
}

TEST_F(InteropTensorboard, PicturesShowImageMaskAndPrediction) {
  for (const char* tag : {"validation/masks/0", "validation/masks/3"}) {
    EXPECT_EQ(of("images", tag).at("4"), (json{3 * 32 + 2, 32, 3 * 32 + 2, 32, "RGB"})) << tag;
  }
  EXPECT_FALSE(found_->at("images").contains("validation/masks/4"));
}

TEST_F(InteropTensorboard, TheRunsOptionsAreATextAndHyperparameters) {
  const json& config = of("text", "config");
  EXPECT_THAT(config.at("4").get<std::string>(), HasSubstr("\nlr = 0.5\n"));
  EXPECT_THAT(config.at("0").get<std::string>(), HasSubstr("\nrecipe = 'unet'\n"));
  const json& hparams = found_->at("hparams");
  EXPECT_EQ(hparams.at("parameters").at("optimizer"), "adamw");
  EXPECT_EQ(hparams.at("parameters").at("batch-size"), 2.0);
  EXPECT_EQ(hparams.at("metrics"), (json{"validation/loss", "validation/dice", "test/loss", "test/dice"}));
  for (const json& tag : hparams.at("metrics")) EXPECT_TRUE(found_->at("scalars").contains(tag)) << tag;
  EXPECT_EQ(hparams.at("status"), 1) << "success";
}

}  // namespace
}  // namespace lockstep
