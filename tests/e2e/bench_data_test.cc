// `lockstep bench data` and `bench step --data`: what they print, over every kind of data that training opens.
#include <gtest/gtest.h>

#include "lockstep/base/testing/long_test.h"
#include "lockstep/base/testing/peak_memory.h"
#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

nlohmann::json found_by(const Words& words) {
  const auto result = lockstep(words + Words{"--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  auto value = nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(value.is_discarded()) << result.out;
  return value;
}

nlohmann::json loaded(const std::string& folder, const Words& more) {
  return found_by(Words{"bench", "data", folder} + more);
}

// Three classes of eight pictures, made at the first call.
const std::string& folders() {
  static const TempDir dir;
  static const bool written = (write_class_folders(dir.path(), 3, 8), true);
  static const std::string path = written ? dir.path() : "";
  return path;
}

TEST(BenchData, LoadsImagesAsTrainingDoes) {
  const auto found = loaded(folders(), {"--size", "48", "--batch-size", "5", "--epochs", "2", "--dtype", "bf16",
                                        "--augment", "strong", "--workers", "1"});
  EXPECT_EQ(found.at("images"), 2 * 24);
  EXPECT_EQ(found.at("rounds").size(), 2u);
  EXPECT_EQ(found.at("shape"), nlohmann::json({3, 48, 48}));
  EXPECT_EQ(found.at("dtype"), "bf16");
  EXPECT_EQ(found.at("workers"), 1);
  EXPECT_NE(found.at("data").get<std::string>().find("strong: RandomResizedCrop 48"), std::string::npos) << found;
  for (const char* name : {"images_per_second", "cpu_us", "read_us", "decode_us", "transform_us", "wait_us"}) {
    EXPECT_GT(found.at(name).get<double>(), 0) << name;
  }
  EXPECT_GT(found.at("file_bytes").get<double>(), 100);
}

TEST(BenchData, OpensEachKind) {
  const TempDir dir;
  write_image_and_mask_folders(dir.path(), 4);
  EXPECT_EQ(loaded(dir.path(), {"--epochs", "1", "--size", "64"}).at("shape"), nlohmann::json({1, 64, 64}));
  const Words shortly = {"--seconds", "0.05"};
  const auto digits = loaded(digits_folder(), shortly);
  EXPECT_EQ(digits.at("shape"), nlohmann::json({1, 28, 28}));
  EXPECT_EQ(digits.at("rounds").size(), 5u);
  EXPECT_EQ(loaded(folders(), shortly).at("shape"), nlohmann::json({3, 224, 224})) << "where nobody says a size";
}

TEST(BenchData, TellsPeopleTheSame) {
  const auto result = lockstep({"bench", "data", folders(), "--epochs", "3", "--size", "32", "--threads", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find(" images/s, the median of 3 rounds"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("2 workers, batches of 64 in fp32"), std::string::npos) << result.out;
}

TEST(BenchData, RefusesWhatCantBe) {
  EXPECT_EQ(lockstep({"bench", "data", digits_folder(), "--size", "32"}).exit_code, 2);
  const TempDir dir;
  const auto nothing = lockstep({"bench", "data", dir.path()});
  EXPECT_EQ(nothing.exit_code, 65);
  EXPECT_NE(nothing.err.find("looked for"), std::string::npos) << nothing.err;
}

TEST(BenchData, ALoaderOfBatchesOf64Takes400MBAtMost) {
  const TempDir dir;
  write_class_folders(dir.path(), 3, 22);
  const auto found = loaded(dir.path(), {"--epochs", "6", "--batch-size", "64", "--workers", "4"});
  EXPECT_GT(found.at("memory_mb").get<double>(), 64 * 3 * 224 * 224 * 4 / 1e6) << "a batch";
  EXPECT_LT(found.at("memory_mb").get<double>(), 400);
}

// Crops of 480 sizes: what is kept from one picture to the next, as the weights of a resize, has an end.
TEST(BenchData, MemoryDoesNotGrowOverTwentyEpochs) {
  if (!testing_support::kMeasuresMemory) GTEST_SKIP() << "sanitizers keep what is freed";
  const auto small = loaded(folders(), {"--epochs", "20", "--size", "32", "--workers", "2"});
  EXPECT_LT(small.at("growth_mb").get<double>(), 16);
}

// A batch has 9.6 MB, and 20 epochs have 60 of them. A block more, or 8 KB an image that nobody gives back, is too
// much.
TEST(BenchData, MemoryDoesNotGrowByABatchOverTwentyEpochs) {
  if (!testing_support::kMeasuresMemory) GTEST_SKIP() << "sanitizers keep what is freed";
  const TempDir dir;
  write_class_folders(dir.path(), 3, 22);
  const auto found = loaded(dir.path(), {"--epochs", "20", "--size", "224", "--batch-size", "16", "--workers", "2"});
  EXPECT_GT(found.at("memory_mb").get<double>(), 4 * 16 * 3 * 224 * 224 * 4 / 1e6) << "three batches ahead, and one";
  EXPECT_LT(found.at("growth_mb").get<double>(), 9);
}

TEST(BenchStep, LoadsItsImages) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words step = {"bench", "step",    "--model", "mobilenet_v2", "--size", "32", "--batch-size",
                      "2",     "--nproc", "2",       "--data",       folders()};
  const auto found = found_by(step);
  EXPECT_EQ(found.at("ranks"), 2);
  EXPECT_GT(found.at("mean_step_ms").get<double>(), 0);
  EXPECT_GE(found.at("wait_ms").get<double>(), 0);
  EXPECT_EQ(found_by(step + Words{"--prefetch", "off", "--seconds", "0.1"}).at("device"), "cpu");
  EXPECT_EQ(found_by(step + Words{"--decode", "device", "--seconds", "0.1"}).at("ranks"), 2);
  const auto other =
      lockstep({"bench", "step", "--model", "lenet", "--batch-size", "2", "--size", "28", "--data", folders()});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("lenet takes [1, 28, 28]"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace lockstep::e2e
