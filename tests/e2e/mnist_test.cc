// The promise of the main job: real digits, learnt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "lockstep/base/testing/long_test.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

TEST(Mnist, IsLearntInFiveEpochs) {
  LOCKSTEP_LONG_TEST_IF(true);
  const std::string data = LOCKSTEP_SOURCE_DIR "/../shared/data/mnist";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not there";
  const TempDir dir;
  const auto result =
      lockstep({"train", "mnist", "--data", data, "--nproc", "2", "--epochs", "5", "--out", dir / "run"}, ".",
               std::chrono::seconds(200));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GE(final_of(dir / "run").at("metrics").at("accuracy").get<double>(), 0.975);
}

// The course's settings, whose loss it prints after 200 batches.
TEST(Mnist, PaddlesCourseIsTheSameByOneRankAndByFour) {
  LOCKSTEP_LONG_TEST_IF(true);
  const std::string data = LOCKSTEP_SOURCE_DIR "/../shared/data/mnist";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not there";
  const TempDir dir;
  std::vector<nlohmann::json> outcomes;
  for (const char* ranks : {"1", "4"}) {
    const std::string run = dir / ranks;
    const auto result = lockstep({"train", "mnist", "--data", data, "--preset", "paddle", "--nproc", ranks, "--steps",
                                  "200", "--epochs", "20", "--log-every", "100", "--out", run});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LE(final_of(run).at("train_loss").get<double>(), 0.45);
    EXPECT_THAT(result.out, testing::ContainsRegex("step 100: training loss [0-9.]+, lr 0.01\n"));
    outcomes.push_back(outcome_of(run));
  }
  EXPECT_EQ(outcomes[0], outcomes[1]);
}

// A part of the file that is neither trained on nor tested.
TEST(Mnist, APartOfAJsonFileIsEvaluated) {
  const std::string data = LOCKSTEP_SOURCE_DIR "/../shared/data/mnist/mnist.json.gz";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not there";
  const TempDir dir;
  ASSERT_EQ(lockstep({"train", "mnist", "--data", data, "--steps", "2", "--out", dir / "run"}).exit_code, 0);
  std::map<std::string, int64_t> samples;
  for (const char* part : {"train", "validation", "test", "valid", "eval"}) {
    const auto result = lockstep({"eval", dir / "run", "--split", part, "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    samples[part] = nlohmann::json::parse(result.out).at("samples").get<int64_t>();
  }
  EXPECT_EQ(samples, (std::map<std::string, int64_t>{
                         {"train", 1500}, {"validation", 250}, {"test", 250}, {"valid", 250}, {"eval", 250}}));
}

// Where there is no data: digits drawn on the spot.
TEST(DrawnDigits, AreTrainedOn) {
  const TempDir dir;
  const auto result = lockstep({"train", "mnist", "--nproc", "2", "--steps", "3", "--out", dir / "run"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(steps_logged(dir / "run"), first_steps(3));
}

}  // namespace
}  // namespace lockstep::e2e
