#include "lockstep/train/evaluated_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/data/subset.h"
#include "lockstep/train/data_list.h"
#include "lockstep/train/run_data.h"
#include "lockstep/train/testing/only_world.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Points of named classes in files; which samples they are, the seed says where there are no files.
struct Photos final : testing_support::Blobs {
  Photos(int64_t size, std::vector<Listed> listed, uint64_t drawn_by, std::vector<std::string> classes)
      : Blobs(size), files(std::move(listed)), seed(drawn_by), names(std::move(classes)) {}
  std::string fingerprint() const override {
    std::string text = files.empty() ? cat("drawn by ", seed) : "files";
    for (const Listed& file : files) text += cat(' ', file.name, ' ', file.bytes);
    return text;
  }
  std::vector<Listed> listing() const override { return files; }
  std::vector<std::string> class_names() const override { return names; }
  int64_t classes() const override { return names.empty() ? 3 : std::ssize(names); }
  std::string description() const override { return "photos"; }

  std::vector<Listed> files;
  uint64_t seed;
  std::vector<std::string> names;
};

struct PhotosRecipe final : testing_support::TinyRecipe {
  std::vector<Listed> files = {{"cats/1.jpg", 800}, {"dogs/1.jpg", 5}}, test_files = {};
  std::vector<std::string> names = {"cats", "dogs", "eels"};
  mutable bool has_findings = false;  // what it was opened with last
  data::Splits open_data(const DataRequest& request) const override {
    has_findings = request.findings != nullptr;
    const auto& train = request.path.empty() ? std::vector<Listed>() : files;
    data::Splits splits{.train = std::make_shared<Photos>(100, train, request.seed, names), .usual_validation = 10};
    if (!test_files.empty()) splits.test = std::make_shared<Photos>(20, test_files, request.seed, names);
    return splits;
  }
};

class EvaluatedDataTest : public ::testing::Test {
 protected:
  // The record of a run on what the recipe now gives, with the data.list of its folder.
  void train(double held_out = 10, uint64_t seed = 7) {
    const OpenedData data = train::open_data(recipe_, asked_.path, seed, false, *world_);
    const int64_t held = static_cast<int64_t>(held_out);
    origin_ = Origin{.options = {{"seed", cat(seed)}, {"validation", cat(held)}},
                     .sample_shape = {2},
                     .train_samples = 100 - held,
                     .data = data.facts};
    std::ofstream(dir_ / "data.list") << to_text(data.files);
  }

  EvaluatedData open() { return open_evaluated_data(recipe_, asked_, origin_, *world_); }

  std::string refusal() {
    try {
      open();
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }

  // As the front knows it of a run in a folder.
  EvaluatedDataTest() { asked_ = {.path = "photos", .run_data = "photos", .run_folder = dir_.path()}; }

  const std::shared_ptr<World> world_ = testing_support::only_world();
  const ::lockstep::testing_support::TempDir dir_;
  PhotosRecipe recipe_;
  EvaluationRequest asked_;
  std::optional<Origin> origin_;
};

TEST_F(EvaluatedDataTest, OfTheRunIsWhatItsOwnTestWasOn) {
  train();
  const EvaluatedData data = open();
  EXPECT_THAT(data.warnings, IsEmpty());
  const auto own = data::complete(recipe_.open_data({.path = "photos"}), {10}, /*seed=*/7).splits.test;
  EXPECT_EQ(data.samples->fingerprint(), own->fingerprint());
  EXPECT_EQ(data.part, Part::kValidation) << "which was held out";
  recipe_.test_files = {{"cats/7.jpg", 1}};
  train(/*held_out=*/25);
  EXPECT_THAT(open().warnings, IsEmpty());
  EXPECT_EQ(open().samples->size(), 20) << "the test part";
  EXPECT_EQ(open().part, Part::kTest);
  train(/*held_out=*/0);
  recipe_.test_files.clear();
  train(/*held_out=*/0);
  EXPECT_THAT(open().samples->description(), HasSubstr("the training samples themselves"));
  EXPECT_EQ(open().part, Part::kTrain);
}

TEST_F(EvaluatedDataTest, FilesThatWereHeldOutAreTheRunsOwnTest) {
  train(/*held_out=*/0);
  origin_->options = {{"seed", "7"}, {"validation", "0"}, {"hold-out", "sample [1-9]?"}};
  origin_->train_samples = 10;
  const EvaluatedData data = open();
  EXPECT_THAT(data.warnings, IsEmpty());
  EXPECT_EQ(data.samples->size(), 90);
  EXPECT_EQ(data.part, Part::kValidation);
}

TEST_F(EvaluatedDataTest, APartIsAsTheRunHadIt) {
  recipe_.test_files = {{"cats/7.jpg", 1}};
  train(/*held_out=*/25);
  const auto size_of = [&](Part part) {
    asked_.part = part;
    EXPECT_EQ(open().part, part);
    return open().samples->size();
  };
  EXPECT_EQ(size_of(Part::kTrain), 75);
  EXPECT_EQ(size_of(Part::kValidation), 25);
  EXPECT_EQ(size_of(Part::kTest), 20);
  EXPECT_TRUE(open().own);
  train(/*held_out=*/0);
  asked_.part = Part::kValidation;
  EXPECT_THAT(refusal(), HasSubstr("photos: has no validation part; leave --split out"));
  recipe_.test_files.clear();
  train(/*held_out=*/10);
  asked_.part = Part::kTest;
  EXPECT_THAT(refusal(), HasSubstr("photos: has no test part"));
}

// Findings cost a look at each file's time.
TEST_F(EvaluatedDataTest, HasFindingsOfARunAlone) {
  train();
  open();
  EXPECT_TRUE(recipe_.has_findings);
  asked_.run_folder.clear();
  open();
  EXPECT_FALSE(recipe_.has_findings);
}

TEST_F(EvaluatedDataTest, ThatAreDrawnAreDrawnByTheRunsSeed) {
  asked_ = {.path = "", .run_data = ""};
  train(/*held_out=*/0, /*seed=*/9);
  EXPECT_EQ(open().samples->fingerprint(), "drawn by 9");
  EXPECT_THAT(open().warnings, IsEmpty());
}

TEST_F(EvaluatedDataTest, OfAFolderThatHasMovedAreTheRunsOwn) {
  train();
  asked_ = {.path = "elsewhere", .named = true, .run_data = "photos", .run_folder = dir_.path()};
  EXPECT_EQ(open().samples->size(), 10);
  EXPECT_THAT(open().warnings, IsEmpty());
}

TEST_F(EvaluatedDataTest, ThatHaveChangedAreRefusedByTheFilesName) {
  train();
  recipe_.files.insert(recipe_.files.begin() + 1, {"cats/new.jpg", 1});
  EXPECT_EQ(refusal(),
            "photos: not the data that the run was trained on: cats/new.jpg was added; put them back, or say --data "
            "photos to evaluate on them as they are");
  asked_.named = true;
  EXPECT_EQ(open().samples->size(), 100) << "nothing is known of what was held out";
  EXPECT_THAT(
      open().warnings,
      ElementsAre(AllOf(HasSubstr("evaluated on photos, and the run was trained on other data: cats/new.jpg was"),
                        HasSubstr("samples that it was trained on may be among them"))));
}

TEST_F(EvaluatedDataTest, AChangeThatTheTestIsNotOnIsTold) {
  recipe_.test_files = {{"cats/7.jpg", 1}};
  train(/*held_out=*/0);
  recipe_.files.pop_back();
  EXPECT_EQ(open().samples->size(), 20);
  EXPECT_THAT(open().warnings, ElementsAre("photos: the training data have changed since: dogs/1.jpg is gone"));
  recipe_.test_files[0].bytes = 2;
  EXPECT_THAT(refusal(), HasSubstr("trained on: test part: cats/7.jpg has 2 bytes, and had 1; put"));
}

TEST_F(EvaluatedDataTest, OfAnotherFolderAreItsTestPartOrAllOfIt) {
  train();
  recipe_.files = {{"1.jpg", 1}};
  asked_ = {.path = "other", .named = true, .run_data = "photos", .run_folder = dir_.path()};
  EXPECT_EQ(open().samples->size(), 100) << "no share of them is held out";
  EXPECT_THAT(open().warnings, ElementsAre("evaluated on other, and the run was trained on photos"));
  recipe_.test_files = {{"2.jpg", 1}};
  EXPECT_EQ(open().samples->size(), 20);
  origin_.reset();
  EXPECT_EQ(open().samples->size(), 20);
  EXPECT_THAT(open().warnings, IsEmpty()) << "weights that say nothing of their data";
}

TEST_F(EvaluatedDataTest, OfAnOlderCheckpointGoByWhatItRecords) {
  train();
  origin_->data = {};
  EXPECT_EQ(open().samples->size(), 10);
  EXPECT_THAT(open().warnings, IsEmpty());
  origin_->train_samples = 70;
  EXPECT_THAT(refusal(), HasSubstr("70 samples of 2 to train on, and these are 90 of 2"));
}

TEST_F(EvaluatedDataTest, HaveTheRunsClasses) {
  train();
  recipe_.files = {{"1.jpg", 1}};
  asked_.named = true;
  recipe_.names = {"eels", "cats"};
  const EvaluatedData some = open();
  EXPECT_EQ(data::classes_of(*some.samples), origin_->data.classes);
  EXPECT_THAT(some.warnings, ::testing::Contains("the data have 2 of the run's 3 classes"));
  recipe_.names = {"cats", "dogs", "wolves"};
  EXPECT_THAT(refusal(),
              HasSubstr("photos: has the class wolves, which is none of the network's 3 (cats, dogs, eels)"));
  recipe_.names.clear();
  EXPECT_THAT(open().warnings, ::testing::Contains(HasSubstr("the data's classes have no names")));
}

}  // namespace
}  // namespace lockstep::train
