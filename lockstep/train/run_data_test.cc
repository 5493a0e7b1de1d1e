#include "lockstep/train/run_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/data/byte_tables.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/run_header.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/testing/byte_images.h"
#include "lockstep/train/testing/encoded_images.h"
#include "lockstep/train/testing/only_world.h"
#include "lockstep/train/testing/tiny_recipe.h"
#include "lockstep/train/trainer.h"
#include "support/worlds.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using ::lockstep::testing_support::refusal;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Points that are said to lie in files, and to decode.
class Files final : public testing_support::Blobs {
 public:
  explicit Files(std::vector<Listed> files, int64_t size = 100) : Blobs(size), files_(std::move(files)) {}
  std::string fingerprint() const override { return cat("files ", files_.size()); }
  std::vector<Listed> listing() const override { return files_; }
  bool decodes() const override { return true; }

 private:
  std::vector<Listed> files_;
};

// A recipe whose data have no test part, unless there are files for one.
struct FilesRecipe : testing_support::TinyRecipe {
  std::vector<Listed> files = {{"cats/1.jpg", 800}, {"dogs/1.jpg", 5}}, test_files;
  data::Splits open_data(const DataRequest& request) const override {
    asked = request;
    data::Splits splits{.train = std::make_shared<Files>(files), .usual_validation = 10};
    if (!test_files.empty()) splits.test = std::make_shared<Files>(test_files, 20);
    return splits;
  }
  mutable DataRequest asked;
};

TEST(RunData, HasAllPartsAndSaysWhatWasHeldOut) {
  const FilesRecipe recipe;
  TrainOptions options;
  options.data.path = "photos";
  options.seed = 7;
  RunData data = open_run_data(recipe, options, *testing_support::only_world());
  EXPECT_EQ(recipe.asked.path, "photos");
  EXPECT_EQ(recipe.asked.seed, 7u);
  EXPECT_FALSE(recipe.asked.channels_last);
  EXPECT_EQ(data.held_out.percent, 10);
  EXPECT_TRUE(data.held_usual);
  EXPECT_EQ(data.splits.train->size(), 90);
  EXPECT_EQ(data.splits.test->size(), 10);
  EXPECT_EQ(data.facts.fingerprints, (ByPart<std::string>{"files 2", "none", "none"})) << "before any is held out";
  EXPECT_EQ(data.facts.classes.count, 3);
  EXPECT_EQ(of(data.files, Part::kTrain), recipe.files);
  EXPECT_GE(data.workers, 1) << "they decode";
  options.data.validation = 50;
  options.data.workers = 0;
  options.channels_last = ChannelsLast::kOn;
  data = open_run_data(recipe, options, *testing_support::only_world());
  EXPECT_TRUE(recipe.asked.channels_last);
  EXPECT_EQ(data.splits.train->size(), 50);
  EXPECT_EQ(data.workers, 0);
}

// Mixes, by bytes or by numbers.
struct Mixing final : data::BatchTransform {
  explicit Mixing(bool bytes) : of_bytes(bytes) {}
  void check(const data::Dataset&) const override {}
  void apply(data::Batch&, const data::Dataset&, const data::LaneDraw&) const override {}
  bool takes_bytes() const override { return of_bytes; }
  std::string text() const override { return "mixing"; }
  bool of_bytes;
};

// Images that come as bytes where they are asked for so.
struct ImagesRecipe : testing_support::TinyRecipe {
  data::Splits open_data(const DataRequest& request) const override {
    const auto images = std::make_shared<testing_support::ByteImages>(100, request.as_bytes && !only_numbers);
    return {.train = images, .test = images};
  }
  std::shared_ptr<const data::BatchTransform> batch_transform() const override { return mixing; }
  bool takes_bytes() const override { return declared; }
  bool only_numbers = false, declared = true;
  std::shared_ptr<const data::BatchTransform> mixing;
};

bool come_as_bytes(const ImagesRecipe& recipe, NormalizeOn normalize, DeviceKind device) {
  TrainOptions options;
  options.normalize = normalize;
  options.device = device;
  const RunData data = open_run_data(recipe, options, *testing_support::only_world());
  EXPECT_EQ(data::has_tables(data.splits.train->fields()), data::has_tables(data.splits.test->fields()));
  return data::has_tables(data.splits.train->fields());
}

TEST(RunData, ImagesComeAsBytesWhereTheDeviceNormalisesThem) {
  using enum NormalizeOn;
  ImagesRecipe recipe;
  EXPECT_FALSE(come_as_bytes(recipe, kAuto, DeviceKind::kCpu));
  EXPECT_TRUE(come_as_bytes(recipe, kAuto, DeviceKind::kCuda));
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    EXPECT_TRUE(come_as_bytes(recipe, kDevice, device));
    EXPECT_FALSE(come_as_bytes(recipe, kHost, device));
  }
  recipe.mixing = std::make_shared<Mixing>(/*bytes=*/true);
  EXPECT_TRUE(come_as_bytes(recipe, kAuto, DeviceKind::kCuda));
  EXPECT_TRUE(come_as_bytes(recipe, kDevice, DeviceKind::kCpu));
  recipe.mixing = std::make_shared<Mixing>(/*bytes=*/false);
  EXPECT_FALSE(come_as_bytes(recipe, kAuto, DeviceKind::kCuda));
  EXPECT_THAT(refusal([&] { come_as_bytes(recipe, kDevice, DeviceKind::kCpu); }),
              HasSubstr("--normalize device: mixing computes with normalised images"));
}

TEST(RunData, NumbersAreNotNormalisedTwice) {
  ImagesRecipe recipe;
  recipe.only_numbers = true;
  EXPECT_FALSE(come_as_bytes(recipe, NormalizeOn::kAuto, DeviceKind::kCuda));
  EXPECT_THAT(refusal([&] { come_as_bytes(recipe, NormalizeOn::kDevice, DeviceKind::kCuda); }),
              HasSubstr("would be normalised twice (byte images); use --normalize host"));
}

// Images that come encoded where they are asked for so.
struct EncodedRecipe : ImagesRecipe {
  data::Splits open_data(const DataRequest& request) const override {
    asked = request;
    auto splits = ImagesRecipe::open_data(request);
    if (request.encoded && !only_pixels) splits.train = std::make_shared<testing_support::EncodedImages>(100);
    return splits;
  }
  bool takes_encoded() const override { return takes; }
  bool takes = true, only_pixels = false;
  mutable DataRequest asked;
};

TEST(RunData, PicturesComeEncodedWhereTheDeviceDecodesThem) {
  TrainOptions options;
  EncodedRecipe recipe;
  const auto open = [&] { return open_run_data(recipe, options, *testing_support::only_world()); };
  EXPECT_FALSE(data::has_encoded(open().splits.train->fields()));
  options.decode = DecodeOn::kDevice;
  const RunData data = open();
  EXPECT_TRUE(data::has_encoded(data.splits.train->fields()));
  EXPECT_FALSE(data::has_encoded(data.splits.test->fields()));
  EXPECT_TRUE(recipe.asked.as_bytes);
  recipe.only_pixels = true;
  EXPECT_THAT(refusal(open), HasSubstr("--decode device: these data are no files of pictures (byte images)"));
  recipe.only_pixels = false;
  recipe.mixing = std::make_shared<Mixing>(/*bytes=*/true);
  EXPECT_THAT(refusal(open), HasSubstr("--decode device: mixing mixes pictures, before"));
  recipe.mixing = nullptr;
  recipe.takes = false;
  EXPECT_THAT(refusal(open), HasSubstr("are decoded on the host; use --decode host"));
}

// A data set of its own may compute with pixels.
TEST(RunData, ARecipeThatDoesNotDeclareItGetsNoBytes) {
  EXPECT_FALSE(FilesRecipe().takes_bytes());
  ImagesRecipe recipe;
  recipe.declared = false;
  EXPECT_FALSE(come_as_bytes(recipe, NormalizeOn::kAuto, DeviceKind::kCuda));
  EXPECT_THAT(refusal([&] { come_as_bytes(recipe, NormalizeOn::kDevice, DeviceKind::kCpu); }),
              HasSubstr("these data come as the numbers that the model takes"));
}

TEST(RunData, AThreadAtLeastLoadsWhereAGpuTrains) {
  EXPECT_EQ(loading_threads(DeviceKind::kCpu, 0), 0);
  EXPECT_EQ(loading_threads(DeviceKind::kCuda, 0), 1);
  EXPECT_EQ(loading_threads(DeviceKind::kCuda, 3), 3);
  const FilesRecipe recipe;
  TrainOptions options;
  options.data.workers = 0;
  options.device = DeviceKind::kCuda;
  EXPECT_EQ(open_run_data(recipe, options, *testing_support::only_world()).workers, 1);
}

TEST(RunData, ReadsWhatAFormerStartHasFound) {
  const ::lockstep::testing_support::TempDir dir;
  const auto found = [](const std::string& folder) {
    return read_findings(folder)->find("masks", "a1", [] { return "looked"; });
  };
  EXPECT_EQ(found(dir.path()), "looked") << "there is no file";
  EXPECT_EQ(found(""), "looked");
  std::ofstream(dir / "data.scan") << "masks a1 0 255\n";
  EXPECT_EQ(found(dir.path()), "0 255");
}

// A recipe that keeps what it finds.
struct FindingRecipe : FilesRecipe {
  data::Splits open_data(const DataRequest& request) const override {
    found = request.on_one_rank([&] { return request.findings->find("masks", "a1", [this] { return look(); }); });
    return FilesRecipe::open_data(request);
  }
  std::string look() const { return cat("look ", ++looks); }
  mutable int looks = 0;
  mutable std::string found;
};

class ResumedData : public ::testing::Test {
 protected:
  ResumedData() {
    options_.recipe = "tiny";
    options_.out = dir_ / "run";
    options_.data.path = "photos";
    options_.steps = 2;
    options_.save_every = Interval{1, Interval::Unit::kSteps};
    fs::create_directories(options_.out + "/checkpoints");
  }

  // Trains to the last step, from where the resumed options begin.
  void train() {
    Trainer(
        set_up(options_, recipe_, testing_support::only_world()), {.seconds_between = 1e9}, [](const std::string&) {},
        [] { return false; }, Logger({.level = LogLevel::kError, .prefix = "", .color = false}, [](const auto&) {}))
        .run();
    options_.resume = options_.out;
    options_.steps = 3;
  }

  std::string refusal_now() {
    return refusal([&] { set_up(options_, recipe_, testing_support::only_world()); });
  }

  std::string config() const {
    std::ostringstream text;
    text << std::ifstream(options_.out + "/config.toml").rdbuf();
    return text.str();
  }

  const ::lockstep::testing_support::TempDir dir_;
  std::shared_ptr<FilesRecipe> recipe_ = std::make_shared<FilesRecipe>();
  TrainOptions options_;
};

TEST_F(ResumedData, AChangedFileIsNamed) {
  train();
  EXPECT_THAT(config(), HasSubstr("validation = 10"));
  EXPECT_THAT(config(), ::testing::Not(HasSubstr("workers"))) << "each machine has its own";
  options_.data.validation = 10;
  EXPECT_EQ(refusal_now(), "");
  recipe_->files.insert(recipe_->files.begin(), {"cats/0.jpg", 1});
  EXPECT_THAT(refusal_now(), HasSubstr("it was trained on other data: cats/0.jpg was added; give the same --data"));
  fs::remove(options_.out + "/data.list");
  EXPECT_THAT(refusal_now(), HasSubstr("it was trained on other data: files 2, and these are files 3"));
}

// Plateau schedules, early stops and the best checkpoint depend on it.
TEST_F(ResumedData, AChangedFileOfTheTestPartIsNamed) {
  recipe_->test_files = {{"cats/7.jpg", 1}};
  train();
  EXPECT_EQ(refusal_now(), "");
  recipe_->test_files.push_back({"eels/1.jpg", 1});
  EXPECT_THAT(refusal_now(), HasSubstr("it was trained on other data: test part: eels/1.jpg was added; give"));
  recipe_->test_files.clear();
  EXPECT_THAT(refusal_now(), HasSubstr("it was trained on other data: test part: cats/7.jpg is gone; give"));
}

TEST_F(ResumedData, WhatWasFoundIsKeptInTheRunsFolder) {
  const auto recipe = std::make_shared<FindingRecipe>();
  recipe_ = recipe;
  train();
  EXPECT_EQ(read_findings(options_.out)->text(), "masks a1 look 1\n");
  EXPECT_EQ(refusal_now(), "");
  EXPECT_EQ(recipe->looks, 1);
  EXPECT_EQ(recipe->found, "look 1");
  options_.out = dir_ / "fork";
  options_.resume = newest_checkpoint(dir_ / "run");
  fs::create_directories(options_.out + "/checkpoints");
  EXPECT_EQ(refusal_now(), "");
  EXPECT_EQ(read_findings(options_.out)->text(), "masks a1 look 1\n") << "a fork has its own";
  EXPECT_EQ(recipe->looks, 1);
}

// Data of which no share can be held out any more.
TEST_F(ResumedData, AChangeIsNotBlamedOnValidation) {
  train();
  options_.data.validation = 0.5;
  recipe_->files.pop_back();
  EXPECT_THAT(refusal_now(), HasSubstr("it was trained on other data: dogs/1.jpg is gone"));
}

TEST_F(ResumedData, WhatWasHeldOutIsNotGuessedAgain) {
  train();
  options_.data.validation.reset();  // as where config.toml was removed
  EXPECT_EQ(set_up(options_, recipe_, testing_support::only_world()).data.train->size(), 90);
  options_.data.validation = 0;
  EXPECT_THAT(refusal_now(), HasSubstr("it was trained with --validation 10, this run has --validation 0"));
}

// Of more samples than any share.
TEST_F(ResumedData, FilesThatWereHeldOutAreRecordedAsSuch) {
  const std::string files = "sample [5-9],sample [1-9]?";
  options_.data.hold_out = files;
  train();
  EXPECT_THAT(config(), AllOf(HasSubstr(cat("hold-out = '", files, '\'')), Not(HasSubstr("validation"))));
  options_.data.hold_out.clear();  // as where config.toml was removed
  const Parts parts = set_up(options_, recipe_, testing_support::only_world());
  EXPECT_EQ(parts.data.train->size(), 5);
  EXPECT_EQ(parts.options.data.hold_out, files);
  EXPECT_FALSE(parts.options.data.validation);
}

TEST_F(ResumedData, NoValidationAndZeroAreTheSame) {
  recipe_->test_files = {{"cats/7.jpg", 1}};
  train();
  EXPECT_THAT(config(), HasSubstr("validation = 0"));
  for (const std::optional<double> same : {std::optional<double>(), std::optional<double>(0)}) {
    options_.data.validation = same;
    EXPECT_EQ(refusal_now(), "");
  }
}

TEST_F(ResumedData, TheHeaderTellsAChosenShareFromTheUsualOne) {
  const auto header = [&] { return header_of(set_up(options_, recipe_, testing_support::only_world())); };
  EXPECT_THAT(header(), AllOf(HasSubstr("(the usual 10 % held out)"), Not(HasSubstr("--validation"))));
  options_.data.validation = 20;
  EXPECT_THAT(header(), AllOf(HasSubstr("(20 % held out)"), HasSubstr("--validation 20")));
  options_.data.validation = 0;
  EXPECT_THAT(header(), HasSubstr("--validation 0"));
}

RANK_PROGRAM(data_of_one_rank_differ) {
  const auto world = ::lockstep::testing_support::join_world(context);
  FilesRecipe recipe;
  EXPECT_EQ(open_run_data(recipe, {}, *world).splits.train->size(), 90);
  EXPECT_EQ(recipe.asked.on_one_rank([&] { return cat("rank ", context.rank); }), "rank 0");
  if (context.rank == 1) recipe.files.pop_back();
  try {
    open_run_data(recipe, {}, *world);
    ADD_FAILURE() << "not refused";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 has other data than rank 0: files 1, and not files 2"));
  }
}
RANK_PROGRAM(test_data_of_one_rank_differ) {
  const auto world = ::lockstep::testing_support::join_world(context);
  FilesRecipe recipe;
  recipe.test_files.resize(static_cast<size_t>(1 + context.rank));
  try {
    open_data(recipe, "photos", 1, false, *world);
    ADD_FAILURE() << "not refused";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 has other data than rank 0: test part: files 2, and not files 1"));
  }
}
TEST(RunData, ARankWithOtherDataIsNamed) {
  ::lockstep::testing_support::expect_ranks_pass("data_of_one_rank_differ", 2);
  ::lockstep::testing_support::expect_ranks_pass("test_data_of_one_rank_differ", 2);
}

}  // namespace
}  // namespace lockstep::train
