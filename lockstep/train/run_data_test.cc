#include "lockstep/train/run_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/testing/only_world.h"
#include "lockstep/train/testing/tiny_recipe.h"
#include "lockstep/train/trainer.h"
#include "support/worlds.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;

// Points that are said to lie in files, and to decode.
class Files final : public testing_support::Blobs {
 public:
  explicit Files(std::vector<Listed> files) : Blobs(100), files_(std::move(files)) {}
  std::string fingerprint() const override { return cat("files ", files_.size()); }
  std::vector<Listed> listing() const override { return files_; }
  bool decodes() const override { return true; }

 private:
  std::vector<Listed> files_;
};

// A recipe whose data have no test part.
struct FilesRecipe : testing_support::TinyRecipe {
  std::vector<Listed> files = {{"cats/1.jpg", 800}, {"dogs/1.jpg", 5}};
  data::Splits open_data(const DataRequest& request) const override {
    asked = request;
    return {.train = std::make_shared<Files>(files), .test = nullptr, .validation = nullptr, .usual_validation = 10};
  }
  mutable DataRequest asked;
};

TEST(RunData, HasAllPartsAndSaysWhatWasHeldOut) {
  const FilesRecipe recipe;
  TrainOptions options;
  options.data.path = "photos";
  options.seed = 7;
  RunData data = open_run_data(recipe, options, 1, *testing_support::only_world());
  EXPECT_EQ(recipe.asked.path, "photos");
  EXPECT_EQ(recipe.asked.seed, 7u);
  EXPECT_FALSE(recipe.asked.channels_last);
  EXPECT_EQ(data.held_out, 10);
  EXPECT_EQ(data.splits.train->size(), 90);
  EXPECT_EQ(data.splits.test->size(), 10);
  EXPECT_EQ(data.fingerprint, "files 2") << "of all, so that it names no seed";
  EXPECT_GE(data.workers, 1) << "they decode";
  options.data.validation = 50;
  options.data.workers = 0;
  options.channels_last = ChannelsLast::kOn;
  data = open_run_data(recipe, options, 1, *testing_support::only_world());
  EXPECT_TRUE(recipe.asked.channels_last);
  EXPECT_EQ(data.splits.train->size(), 50);
  EXPECT_EQ(data.workers, 0);
}

TEST(RunData, AChangedFileIsNamedAtAResume) {
  const ::lockstep::testing_support::TempDir dir;
  const auto recipe = std::make_shared<FilesRecipe>();
  TrainOptions options;
  options.recipe = "tiny";
  options.out = dir / "run";
  options.steps = 2;
  options.save_every = Interval{1, Interval::Unit::kSteps};
  fs::create_directories(options.out + "/checkpoints");
  Trainer(
      set_up(options, recipe, testing_support::only_world()), {.seconds_between = 1e9}, [](const std::string&) {},
      [] { return false; }, Logger({.level = LogLevel::kError, .prefix = "", .color = false}, [](const auto&) {}))
      .run();
  std::ostringstream config;
  config << std::ifstream(options.out + "/config.toml").rdbuf();
  EXPECT_THAT(config.str(), HasSubstr("validation = 10"));
  EXPECT_THAT(config.str(), ::testing::Not(HasSubstr("workers"))) << "each machine has its own";
  options.resume = options.out;
  options.data.validation = 10;
  options.steps = 3;
  EXPECT_EQ(refusal([&] { set_up(options, recipe, testing_support::only_world()); }), "");
  recipe->files.insert(recipe->files.begin(), {"cats/0.jpg", 1});
  EXPECT_THAT(refusal([&] { set_up(options, recipe, testing_support::only_world()); }),
              HasSubstr("it was trained on other data: cats/0.jpg was added; give the same --data"));
  fs::remove(options.out + "/data.list");
  EXPECT_THAT(refusal([&] { set_up(options, recipe, testing_support::only_world()); }),
              HasSubstr("it was trained with other data: files 2, this run has files 3"));
}

RANK_PROGRAM(data_of_one_rank_differ) {
  const auto world = ::lockstep::testing_support::join_world(context);
  FilesRecipe recipe;
  EXPECT_EQ(open_run_data(recipe, {}, 2, *world).splits.train->size(), 90);
  EXPECT_EQ(recipe.asked.on_one_rank([&] { return cat("rank ", context.rank); }), "rank 0");
  if (context.rank == 1) recipe.files.pop_back();
  try {
    open_run_data(recipe, {}, 2, *world);
    ADD_FAILURE() << "not refused";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 has other data than rank 0: files 1, and not files 2"));
  }
}
TEST(RunData, ARankWithOtherDataIsNamed) {
  ::lockstep::testing_support::expect_ranks_pass("data_of_one_rank_differ", 2);
}

}  // namespace
}  // namespace lockstep::train
