// A run of --skip-bad that goes on, in its folder or in another one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/testing/only_world.h"
#include "lockstep/train/testing/tiny_recipe.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Three of its samples are damaged.
struct Damaged final : testing_support::Blobs {
  using Blobs::Blobs;
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    if (std::set<int64_t>{7, 20, 71}.contains(index)) throw DataError(name_of(index), ": is damaged");
    Blobs::read(index, draw, rows, stats);
  }
};

struct DamagedRecipe final : testing_support::TinyRecipe {
  data::Splits open_data(const DataRequest&) const override {
    return {std::make_shared<Damaged>(100), std::make_shared<testing_support::Blobs>(50), nullptr};
  }
};

class SkippedRun : public testing::Test {
 protected:
  void SetUp() override {
    options_.recipe = "tiny";
    options_.out = folder_;
    options_.data.skip_bad = 3;
    options_.steps = 13;  // an epoch
    options_.save_every = Interval{1, Interval::Unit::kSteps};
    options_.keep = 99;
  }
  void TearDown() override {
    fs::remove_all(folder_);
    fs::remove_all(fork_);
  }

  void train(const TrainOptions& options) {
    fs::create_directories(options.out + "/checkpoints");
    Trainer trainer(
        set_up(options, std::make_shared<DamagedRecipe>(), testing_support::only_world()), {.seconds_between = 1e9},
        [](const std::string&) {}, [] { return false; }, log_);
    trainer.run();
  }

  // The first checkpoint of a run that has passed over one sample or two, not all three.
  std::string early_checkpoint() const {
    for (int step = 1; step <= 13; ++step) {
      const std::string file = folder_ + "/checkpoints/" + checkpoint::step_file_name(step);
      const size_t count = read_state(checkpoint::read_pt(file), file).skipped.size();
      if (count == 1 || count == 2) return file;
    }
    throw BugError("all damaged samples are met in one step");
  }

  static std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  // As skipped.txt has them.
  static std::string list_in(const std::string& file) {
    std::string list;
    for (const auto& each : read_state(checkpoint::read_pt(file), file).skipped) list += each.why + '\n';
    return list;
  }

  std::string folder_ = testing::TempDir() + "skipped." + std::to_string(getpid()), fork_ = folder_ + ".fork";
  TrainOptions options_;
  Logger log_{{.level = LogLevel::kError, .prefix = "", .color = false}, [](const std::string&) {}};
};

TEST_F(SkippedRun, IsNotResumedWithALimitBelowItsList) {
  train(options_);
  options_.resume = folder_;
  options_.steps = 20;
  for (const int64_t most : {0, 1, 2}) {
    options_.data.skip_bad = most;
    try {
      train(options_);
      ADD_FAILURE() << most << " is not refused";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(cat("3 samples that can't be read, and --skip-bad is ", most,
                                              "; give --skip-bad 3 or more")));
    }
  }
  options_.data.skip_bad = 3;
  train(options_);
}

TEST_F(SkippedRun, AForkHasTheListOfItsCheckpoint) {
  train(options_);
  options_.resume = early_checkpoint();
  options_.out = fork_;
  options_.steps = read_state(checkpoint::read_pt(*options_.resume), "").step;  // nothing new is met
  const std::string list = list_in(*options_.resume);
  EXPECT_THAT(list, HasSubstr(": is damaged\n"));
  train(options_);
  EXPECT_EQ(text_of(fork_ + "/skipped.txt"), list);
}

TEST_F(SkippedRun, WhatIsDroppedIsDroppedFromTheListToo) {
  train(options_);
  EXPECT_EQ(text_of(folder_ + "/skipped.txt"), list_in(folder_ + "/checkpoints/last.pt"));
  options_.resume = early_checkpoint();
  options_.overwrite = true;
  options_.steps = read_state(checkpoint::read_pt(*options_.resume), "").step;
  const std::string list = list_in(*options_.resume);
  train(options_);
  EXPECT_EQ(text_of(folder_ + "/skipped.txt"), list);
}

// Data that lie in no files, and none of them is bad: the lists of the run before are no lists of this one.
TEST_F(SkippedRun, ANewRunHasNoListsOfAnOldOne) {
  fs::create_directories(folder_);
  for (const char* list : {"data.list", "skipped.txt"}) std::ofstream(fs::path(folder_) / list) << "812 cats/1.jpg\n";
  options_.overwrite = true;
  const Parts parts = set_up(options_, std::make_shared<testing_support::TinyRecipe>(), testing_support::only_world());
  EXPECT_FALSE(fs::exists(parts.files.data_list()));
  EXPECT_FALSE(fs::exists(parts.files.skipped()));
}

}  // namespace
}  // namespace lockstep::train
