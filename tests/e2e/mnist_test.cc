// The promise of the main job: real digits, learnt.
#include <gtest/gtest.h>

#include <filesystem>

#include "runs.h"

namespace lockstep::e2e {
namespace {

TEST(Mnist, IsLearntInFiveEpochs) {
  const std::string data = LOCKSTEP_SOURCE_DIR "/../shared/data/mnist";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not there";
  const TempDir dir;
  const auto result =
      lockstep({"train", "mnist", "--data", data, "--nproc", "2", "--epochs", "5", "--out", dir / "run"}, ".",
               std::chrono::seconds(200));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GE(final_of(dir / "run").at("metrics").at("accuracy").get<double>(), 0.975);
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
