// Mixed precision as a user asks for it: --amp auto, what it goes by, and --detect-anomaly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/base/error.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// A cache of this test's own.
class AutoAmp : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_CACHE_HOME", cache_.c_str(), 1); }
  void TearDown() override { unsetenv("XDG_CACHE_HOME"); }
  Result train(const std::string& run, const Words& more) {
    return lockstep(train_words({"--steps", "2", "--out", run}) + more);
  }

  const TempDir dir_;
  const std::string cache_ = dir_ / "cache", run_ = dir_ / "run";
};

TEST_F(AutoAmp, IsMeasuredOnceSaidAndRecorded) {
  const auto first = train(run_, {"--amp", "--nproc", "2"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr(" times fp32 here)"));
  ASSERT_TRUE(fs::exists(cache_ + "/lockstep"));
  EXPECT_EQ(std::distance(fs::directory_iterator(cache_ + "/lockstep"), {}), 1);
  const std::string config = text_of(run_ + "/config.toml");
  EXPECT_THAT(config, AnyOf(HasSubstr("amp = 'O1'"), HasSubstr("amp = 'O0'")));
  // The record decides from here on, whatever another machine would take.
  std::ofstream(fs::directory_iterator(cache_ + "/lockstep")->path()) << "{}";
  const auto again = lockstep({"train", "mnist", "--resume", run_, "--steps", "3"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const auto asked_again = lockstep({"train", "mnist", "--resume", run_, "--steps", "4", "--amp", "auto"});
  ASSERT_EQ(asked_again.exit_code, 0) << asked_again.err;
  EXPECT_THAT(asked_again.out, HasSubstr("(auto: as in the checkpoint)"));
}

TEST_F(AutoAmp, NeedsNoCache) {
  std::ofstream(cache_.c_str()) << "no folder";
  const auto result = train(run_, {"--amp"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
}

TEST_F(AutoAmp, TheDoctorMeasuresAndRemembers) {
  const auto result = lockstep({"bench", "precision", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto found = nlohmann::json::parse(result.out);
  EXPECT_GT(found.at("fp32_gflops").get<double>(), 0);
  EXPECT_THAT(found.at("auto").get<std::string>(), AnyOf(HasSubstr("O0"), HasSubstr("O1")));
  EXPECT_TRUE(fs::exists(cache_ + "/lockstep"));
}

TEST(DetectAnomaly, NamesStepRankAndLayer) {
  const TempDir dir;
  const auto result = lockstep(
      train_words({"--nproc",      "2",        "--steps",          "40",    "--lr",     "1000", "--momentum", "0.99",
                   "--schedule",   "constant", "--warmup",         "0",     "--amp",    "O1",   "--dtype",    "fp16",
                   "--loss-scale", "1",        "--detect-anomaly", "--out", dir / "run"}));
  EXPECT_EQ(result.exit_code, DataError::kExitCode);
  EXPECT_THAT(result.err, testing::ContainsRegex("step [0-9]+, rank [01], lane [0-3]: the first value that is not "
                                                 "finite came from (conv1|conv2|fc1|fc2|fc3) \\(aten::"));
}

}  // namespace
}  // namespace lockstep::e2e
