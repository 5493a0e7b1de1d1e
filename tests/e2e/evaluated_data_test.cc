// Which samples `lockstep eval` judges by, and on which data a run may go on: never on others in silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "digits.h"
#include "lockstep/base/error.h"
#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr auto kPatience = std::chrono::seconds(120);

const Words kTiny = {"--arch", "mobilenet_v2", "--size", "64",        "--lanes", "2", "--batch-size",
                     "4",      "--lr",         "0.001",  "--threads", "1"};

Words train_on(const std::string& data, const std::string& run, const Words& more = {}) {
  return Words{"train", "imagenet", "--data", data, "--out", run, "--steps", "2"} + kTiny + more;
}

Json json_of(const Result& result) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
}

// A number: what is none would equal any other.
double loss_of(const Result& result) { return json_of(result).at("loss").get<double>(); }
double final_loss(const std::string& run) { return final_of(run).at("loss").get<double>(); }

void expect_refused(const Result& result, int code, const std::string& what) {
  EXPECT_EQ(result.exit_code, code) << result.err;
  EXPECT_THAT(result.err, HasSubstr(what));
}

// A run on three classes of eight pictures, without a part to test on.
class OneFolder : public ::testing::Test {
 protected:
  OneFolder() {
    write_class_folders(photos_, 3, 8);
    const auto result = lockstep(train_on(photos_, run_, {"--nproc", "2"}), ".", kPatience);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    header_ = result.out;
  }
  Result eval(const Words& more = {}) const { return lockstep(Words{"eval", run_, "--json"} + more, ".", kPatience); }

  const TempDir dir_;
  const std::string photos_ = dir_ / "photos", run_ = dir_ / "run";
  std::string header_;
};

TEST_F(OneFolder, IsEvaluatedOnWhatItHeldOut) {
  EXPECT_THAT(header_, AllOf(HasSubstr("(the usual 10 % held out)"), Not(HasSubstr("--validation"))));
  for (const char* nproc : {"1", "2"}) {
    const auto own = eval({"--nproc", nproc});
    EXPECT_EQ(own.err, "");
    EXPECT_EQ(json_of(own).at("samples"), 2);
    EXPECT_EQ(loss_of(own), final_loss(run_));
  }
  fs::rename(photos_, dir_ / "moved");
  const auto moved = eval({"--data", dir_ / "moved"});
  EXPECT_EQ(moved.err, "");
  EXPECT_EQ(loss_of(moved), final_loss(run_));
}

TEST_F(OneFolder, ThatHasChangedIsNotEvaluatedUnasked) {
  fs::copy(photos_ + "/class_00/0.jpg", photos_ + "/class_00/new.jpg");
  for (const char* nproc : {"1", "2"}) {
    expect_refused(eval({"--nproc", nproc}), DataError::kExitCode,
                   photos_ + ": not the data that the run was trained on: class_00/new.jpg was added; put them back");
  }
  const auto asked = eval({"--data", photos_});
  EXPECT_EQ(json_of(asked).at("samples"), 25) << "what was held out is no longer known";
  EXPECT_THAT(asked.err, AllOf(HasSubstr("warning: "), HasSubstr("class_00/new.jpg was added"),
                               HasSubstr("samples that it was trained on may be among them")));
}

// Classes are told by their names: the second and third class of the run are the first and second of a folder without
// the first one.
TEST_F(OneFolder, OtherFoldersHaveTheRunsClassesOrAreRefused) {
  write_class_folders(dir_ / "all", 3, 5, /*seed=*/2);
  fs::create_directories(dir_ / "first");
  fs::create_directories(dir_ / "rest");
  fs::copy(dir_ / "all/class_00", dir_ / "first/class_00", fs::copy_options::recursive);
  fs::copy(dir_ / "all/class_01", dir_ / "rest/class_01", fs::copy_options::recursive);
  fs::copy(dir_ / "all/class_02", dir_ / "rest/class_02", fs::copy_options::recursive);
  const auto all = eval({"--data", dir_ / "all"}), first = eval({"--data", dir_ / "first"}),
             rest = eval({"--data", dir_ / "rest"});
  EXPECT_THAT(all.err, HasSubstr("evaluated on " + (dir_ / "all") + ", and the run was trained on " + photos_));
  EXPECT_THAT(rest.err, HasSubstr("the data have 2 of the run's 3 classes"));
  EXPECT_EQ(json_of(all).at("samples"), 15) << "no share of other data is held out";
  EXPECT_NEAR(15 * loss_of(all), 5 * loss_of(first) + 10 * loss_of(rest), 1e-3);
  fs::rename(dir_ / "rest/class_01", dir_ / "rest/wolves");
  expect_refused(eval({"--data", dir_ / "rest"}), DataError::kExitCode, "has the class wolves");
}

// Not blamed on --validation, of which a class could spare no sample now.
TEST_F(OneFolder, AResumeOnChangedPicturesNamesThem) {
  for (int i = 1; i < 8; ++i) {
    for (const char* name : {"class_00/", "class_01/", "class_02/"})
      fs::remove(photos_ + "/" + name + std::to_string(i) + ".jpg");
  }
  const auto resumed = lockstep({"train", "--resume", run_, "--steps", "3"}, ".", kPatience);
  expect_refused(resumed, ConfigError::kExitCode, "it was trained on other data: class_00/1.jpg is gone");
  EXPECT_THAT(resumed.err, Not(HasSubstr("--validation")));
}

TEST(TwoParts, AChangedPictureToTestOnIsNamedAtAResumeAndAnEvaluation) {
  const TempDir dir;
  write_class_folders(dir / "photos/train", 2, 4);
  write_class_folders(dir / "photos/val", 2, 2, /*seed=*/2);
  ASSERT_EQ(lockstep(train_on(dir / "photos", dir / "run"), ".", kPatience).exit_code, 0);
  EXPECT_EQ(json_of(lockstep({"eval", dir / "run", "--json"}, ".", kPatience)).at("samples"), 4);
  fs::rename(dir / "photos/train/class_00/0.jpg", dir / "photos/val/class_00/seen.jpg");
  const std::string seen = "test part: class_00/seen.jpg was added";
  expect_refused(lockstep({"eval", dir / "run"}), DataError::kExitCode, seen);
  fs::rename(dir / "photos/train/class_00/1.jpg", dir / "photos/train/class_00/0.jpg");
  fs::copy(dir / "photos/train/class_00/0.jpg", dir / "photos/train/class_00/1.jpg");
  fs::remove(dir / "run/data.list");
  expect_refused(lockstep({"eval", dir / "run"}), DataError::kExitCode, "not the data that the run was trained on");
  fs::remove(dir / "photos/val/class_00/0.jpg");
  expect_refused(lockstep({"train", "--resume", dir / "run", "--steps", "3"}), ConfigError::kExitCode,
                 "it was trained on other data");
}

TEST(RareClass, DoesNotKeepTheOthersFromBeingHeldOut) {
  const TempDir dir;
  write_class_folders(dir / "photos", 12, 1);
  for (int i = 1; i < 20; ++i) {
    fs::copy(dir / "photos/class_00/0.jpg", dir / cat("photos/class_00/more", i, ".jpg"));
  }
  const auto result = lockstep(train_on(dir / "photos", dir / "run", {"--validation", "50"}), ".", kPatience);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("15 of 31 JPEGs of 12 classes"));
  EXPECT_THAT(result.out, HasSubstr("(50 % held out, of the classes that can spare one)"));
  EXPECT_EQ(loss_of(lockstep({"eval", dir / "run", "--json"}, ".", kPatience)), final_loss(dir / "run"));
}

TEST(DrawnData, AreEvaluatedByTheRunsSeed) {
  const TempDir dir;
  const auto trained =
      lockstep({"train", "mnist", "--steps", "3", "--seed", "5", "--nproc", "2", "--out", dir / "run"}, ".", kPatience);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto own = lockstep({"eval", dir / "run", "--json"}, ".", kPatience);
  EXPECT_EQ(own.err, "");
  EXPECT_EQ(loss_of(own), final_loss(dir / "run"));
}

// Each rank has a disk of its own.
class OwnDisks : public ::testing::Test {
 protected:
  // `words` on two ranks; %d is the rank's number.
  Result on_two(const Words& words) const {
    std::string line = "exec " + bin_folder() + "/lockstep-worker";
    for (std::string word : words) {
      if (const size_t at = word.find("%d"); at != word.npos) word.replace(at, 2, "$RANK");
      line += " \"" + word + '"';
    }
    return lockstep({"launch", "--nproc", "2", "sh", "-c", line}, ".", kPatience);
  }
  const TempDir dir_;
};

TEST_F(OwnDisks, AnEvaluationOnDataThatDifferIsRefused) {
  write_digits(dir_ / "0", 40, 20);
  write_digits(dir_ / "1", 40, 30);
  const auto result =
      on_two({"eval", "mnist", "--load", finished_run() + "/checkpoints/last.pt", "--data", dir_ / "%d"});
  expect_refused(result, DataError::kExitCode, "rank 1 has other data than rank 0: test part: images ");
}

TEST_F(OwnDisks, APartThatOneRankLacksIsNamedAndNotWaitedFor) {
  for (const char* rank : {"0", "1"}) write_class_folders(dir_ / rank + "/train", 2, 4);
  write_class_folders(dir_ / "0/val", 2, 2, /*seed=*/2);
  const auto result = on_two(train_on(dir_ / "%d", dir_ / "run"));
  expect_refused(result, DataError::kExitCode, (dir_ / "1/val/class_00/0.jpg"));
}

}  // namespace
}  // namespace lockstep::e2e
