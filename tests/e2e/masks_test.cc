// `lockstep train unet --data`: folders of one's own pictures and their masks.
#include <gtest/gtest.h>

#include <filesystem>

#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;

Words train_masks(const std::string& data, const std::string& run, const Words& more) {
  return Words{"train",   "unet", "--data",       data, "--size",    "32", "--width", "4",
               "--lanes", "4",    "--batch-size", "1",  "--threads", "1",  "--out",   run} +
         more;
}

TEST(Masks, GiveTheSameBitsAtAnyNumberOfRanks) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 10);
  nlohmann::json one;
  for (const char* nproc : {"1", "2", "4"}) {
    const std::string run = dir / nproc;
    const auto result =
        lockstep(train_masks(dir / "pairs", run, {"--steps", "3", "--nproc", nproc, "--workers", nproc}), ".",
                 std::chrono::seconds(200));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    if (one.is_null()) one = outcome_of(run);
    EXPECT_EQ(outcome_of(run), one) << nproc << " ranks";
  }
  EXPECT_EQ(one.at("metrics").at("dice_per_class").size(), 2u);
}

TEST(Masks, AreLearnt) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 32);
  const auto result = lockstep(
      train_masks(dir / "pairs", dir / "run", {"--epochs", "12", "--lr", "0.01", "--nproc", "2", "--validation", "25"}),
      ".", std::chrono::seconds(200));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(final_of(dir / "run").at("metrics").at("dice").get<double>(), 0.7);
}

TEST(Masks, AnImageWithoutOneIsNamed) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 4);
  fs::remove(dir / "pairs/masks/2.png");
  const auto result = lockstep(train_masks(dir / "pairs", dir / "run", {}));
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_NE(result.err.find("2.png"), std::string::npos) << result.err;
}

TEST(Micrographs, TrainAtOnce) {
  const std::string data = LOCKSTEP_SOURCE_DIR "/../shared/data/membrane";
  if (!fs::exists(data)) GTEST_SKIP() << data << " is not there";
  const TempDir dir;
  const auto result = lockstep({"train", "unet", "--data", data, "--size", "64", "--width", "4", "--steps", "3",
                                "--nproc", "2", "--out", dir / "run"},
                               ".", std::chrono::seconds(200));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(steps_logged(dir / "run"), first_steps(3));
  EXPECT_EQ(final_of(dir / "run").at("metrics").at("dice_per_class").size(), 2u);
}

}  // namespace
}  // namespace lockstep::e2e
