// Runs with pictures that can't be read: what is said of them, how the run goes on, and how it is evaluated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/long_test.h"
#include "lockstep/base/text.h"
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

// Three classes of six pictures to train on, and of three to test on.
class PassedOver : public ::testing::Test {
 protected:
  PassedOver() {
    write_class_folders(photos_ + "/train", 3, 6);
    write_class_folders(photos_ + "/val", 3, 3, /*seed=*/2);
  }

  // Cuts a picture short, so that it can't be read.
  static void damage(const std::string& picture) { fs::resize_file(picture, 300); }

  Result train(const Words& more) const { return train_into(run_, more); }
  Result train_into(const std::string& run, const Words& more) const {
    const Words tiny = {
        "train",        "imagenet", "--data",       photos_, "--out",    run, "--arch",    "mobilenet_v2",
        "--size",       "64",       "--lr",         "0.001", "--lanes",  "2", "--threads", "1",
        "--batch-size", "2",        "--save-every", "1",     "--epochs", "2"};
    return lockstep(tiny + more, ".", kPatience);
  }
  Json eval(const Words& words) const {
    const auto result = lockstep(Words{"eval"} + words + Words{"--json"}, ".", kPatience);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  // What a report says to do next, done as a user would.
  static Result do_next(const Result& ended) {
    const std::string label = "\n  next: ";
    const size_t at = ended.err.find(label);
    if (at == std::string::npos) return {.err = "no next: in " + ended.err};
    const size_t begin = at + label.size();
    const std::string line = ended.err.substr(begin, ended.err.find('\n', begin) - begin);
    return Program({.command = {"/bin/sh", "-c", "PATH=" + bin_folder() + ":$PATH; exec " + line}}).wait(kPatience);
  }

  const TempDir dir_;
  const std::string photos_ = dir_ / "photos", run_ = dir_ / "run";
};

TEST_F(PassedOver, ARunIsEvaluatedAsItEvaluatedItself) {
  damage(photos_ + "/val/class_01/1.jpg");
  damage(photos_ + "/train/class_00/2.jpg");
  const auto trained = train({"--skip-bad", "2"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const double loss = final_of(run_).at("loss");
  for (const char* nproc : {"1", "2"}) {
    const Json own = eval({run_, "--nproc", nproc});
    EXPECT_EQ(own.at("loss"), loss) << nproc;
    EXPECT_EQ(own.at("samples"), 8);
    EXPECT_EQ(own.at("left_out"), 1);
  }
  fs::rename(photos_, dir_ / "moved");
  EXPECT_EQ(eval({run_, "--data", dir_ / "moved"}).at("loss"), loss) << "wherever the data lie";
  const auto people = lockstep({"eval", run_, "--data", dir_ / "moved"}, ".", kPatience);
  EXPECT_THAT(people.out, HasSubstr("on 8 test samples (1 more can't be read) of "));
  EXPECT_EQ(people.err, "");
}

// The pictures to test on are read at the run's end alone, after its checkpoints.
TEST_F(PassedOver, ThoseThatNoCheckpointListsAreWithinTheRunsLimit) {
  damage(photos_ + "/val/class_01/1.jpg");
  ASSERT_EQ(train({"--skip-bad", "1", "--validation", "30"}).exit_code, 0);
  const Json own = eval({run_});
  EXPECT_EQ(own.at("left_out"), 1);
  EXPECT_EQ(own.at("loss"), final_of(run_).at("loss"));
  const auto none = lockstep({"eval", run_, "--skip-bad", "0"}, ".", kPatience);
  EXPECT_EQ(none.exit_code, DataError::kExitCode) << none.out;
}

TEST_F(PassedOver, OtherDataAreEvaluatedWithoutThemIfAsked) {
  ASSERT_EQ(train({"--steps", "2"}).exit_code, 0);
  write_class_folders(dir_ / "other", 3, 4, /*seed=*/3);
  const std::string bad = dir_ / "other/class_02/3.jpg";
  damage(bad);
  const auto refused = lockstep({"eval", run_, "--data", dir_ / "other", "--nproc", "2"}, ".", kPatience);
  EXPECT_EQ(refused.exit_code, DataError::kExitCode);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(bad), HasSubstr("--skip-bad N leaves out up to N such samples")));
  std::string losses;
  for (const char* nproc : {"1", "2"}) {
    const Json found = eval({run_, "--data", dir_ / "other", "--skip-bad", "1", "--nproc", nproc});
    EXPECT_EQ(found.at("samples"), 11);
    EXPECT_EQ(found.at("left_out"), 1);
    if (losses.empty()) losses = found.at("loss").dump();
    EXPECT_EQ(found.at("loss").dump(), losses) << nproc;
  }
  const auto told = lockstep({"eval", run_, "--data", dir_ / "other", "--skip-bad", "1"}, ".", kPatience);
  EXPECT_THAT(told.err, HasSubstr("left out: " + bad));
}

// Removed files would make it another run's data.
TEST_F(PassedOver, ABadPictureDoesNotEndTheRunForGood) {
  const std::string bad = photos_ + "/train/class_01/3.jpg";
  damage(bad);
  const auto ended = train({"--nproc", "2", "--seed", "3"});
  EXPECT_EQ(ended.exit_code, DataError::kExitCode) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr(bad), HasSubstr("--skip-bad N passes over up to N such samples"),
                               HasSubstr("\n  next: lockstep train imagenet --resume " + run_ + " --skip-bad 2\n")));
  const auto next = do_next(ended);
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(final_of(run_).at("skipped"), 1);
}

TEST_F(PassedOver, BeyondTheLimitTheNextCommandRaisesIt) {
  for (const char* name : {"class_00/2", "class_01/3", "class_02/5"}) damage(photos_ + "/train/" + name + ".jpg");
  Result ended = train({"--nproc", "2", "--skip-bad", "1", "--seed", "3"});
  EXPECT_EQ(ended.exit_code, DataError::kExitCode) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr("skip-bad passes over 1"), HasSubstr("--skip-bad 4\n"),
                               Not(HasSubstr("repair or remove them"))));
  const auto again = lockstep({"train", "--resume", run_}, ".", kPatience);
  EXPECT_EQ(again.exit_code, DataError::kExitCode);
  EXPECT_THAT(again.err, HasSubstr("\n  next: lockstep train imagenet --resume " + run_ + " --skip-bad 4\n"))
      << "in the first step of a resume, too";
  ended = do_next(ended);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(final_of(run_).at("skipped"), 3);
}

// It is met in an evaluation, by one rank, and all of them say so.
TEST_F(PassedOver, ABadPictureToTestOnNamesOneRankAndTheNextCommand) {
  LOCKSTEP_LONG_TEST_IF(true);
  damage(photos_ + "/val/class_02/2.jpg");
  const auto ended = train({"--nproc", "2", "--validation", "0"});
  EXPECT_EQ(ended.exit_code, DataError::kExitCode);
  const std::string headline = ended.err.substr(0, ended.err.find('\n'));
  EXPECT_THAT(headline, AllOf(HasSubstr("val/class_02/2.jpg"), HasSubstr("--skip-bad N")));
  const size_t first = headline.find("rank ");
  EXPECT_EQ(headline.find("rank ", first + 1), std::string::npos) << headline;
  EXPECT_THAT(ended.err, HasSubstr("--skip-bad 2\n"));
  EXPECT_EQ(do_next(ended).exit_code, 0);
  EXPECT_EQ(eval({run_}).at("left_out"), 1);
}

// The first one to test on is tried before the run.
TEST_F(PassedOver, ABadFirstPictureToTestOnEndsTheRunBeforeItBegins) {
  ASSERT_EQ(train({"--steps", "5", "--seed", "3"}).exit_code, 0);
  damage(photos_ + "/val/class_00/0.jpg");
  damage(photos_ + "/val/class_00/1.jpg");
  const auto changed = lockstep({"train", "--resume", run_}, ".", kPatience);
  EXPECT_THAT(changed.err, HasSubstr("it was trained on other data")) << "their sizes tell";
  const auto fresh = train_into(dir_ / "fresh", {});
  EXPECT_EQ(fresh.exit_code, DataError::kExitCode);
  EXPECT_THAT(fresh.err, HasSubstr("--skip-bad N passes over up to N such samples"));
  EXPECT_FALSE(fs::exists(dir_ / "fresh"));
}

}  // namespace
}  // namespace lockstep::e2e
