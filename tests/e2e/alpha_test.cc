// `lockstep train unet --channels`: images with transparency, which is a channel of the network's input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"
#include "lockstep/image/encode.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void write_png(const std::string& path, const image::Pixels& pixels) {
  const auto bytes = image::encode_png(pixels);
  write_file(path, std::string(bytes.begin(), bytes.end()));
}

// `count` pairs whose colours, or grey levels, are noise: the disc of the mask is in the alpha alone.
void write_discs_in_alpha(const std::string& folder, int count, int channels) {
  constexpr int kSide = 64;
  for (const char* name : {"imgs", "masks"}) fs::create_directories(fs::path(folder) / name);
  for (int i = 0; i < count; ++i) {
    RandomStream random(static_cast<uint64_t>(i), Purpose::kSynthetic, 0, 0);
    const auto place = [&] { return kSide / 4 + static_cast<int>(random.below(kSide / 2)); };
    const int centre_x = place(), centre_y = place();
    image::Pixels picture, mask;
    picture.reshape({kSide, kSide}, channels);
    mask.reshape({kSide, kSide}, 1);
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const int across = x - centre_x, down = y - centre_y;
        const bool inside = across * across + down * down < kSide * kSide / 16;
        for (int c = 0; c < 3; ++c) picture.at(x, y)[c] = static_cast<uint8_t>(random.below(256));
        picture.at(x, y)[3] = inside ? 220 : 40;
        *mask.at(x, y) = inside ? 255 : 0;
      }
    }
    write_png(cat(folder, "/imgs/", i, ".png"), picture);
    write_png(cat(folder, "/masks/", i, ".png"), mask);
  }
}

Words train_discs(const std::string& data, const std::string& run, const Words& more) {
  return Words{"train",   "unet", "--data",       data, "--size",    "32", "--width", "4",
               "--lanes", "4",    "--batch-size", "2",  "--threads", "1",  "--out",   run} +
         more;
}

Result run_of(const Words& words) { return lockstep(words, ".", std::chrono::seconds(200)); }

TEST(ImagesWithAlpha, AreLearntWithTheSameBitsAtAnyNumberOfRanks) {
  const TempDir dir;
  write_discs_in_alpha(dir / "data", 32, 4);
  nlohmann::json one;
  for (const char* nproc : {"1", "2", "4"}) {
    const auto result = run_of(train_discs(dir / "data", dir / nproc,
                                           {"--channels", "4", "--nproc", nproc, "--epochs", "12", "--lr", "0.01",
                                            "--augment", "strong", "--validation", "25"}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("4 input channels"));
    if (one.is_null()) one = outcome_of(dir / nproc);
    EXPECT_EQ(outcome_of(dir / nproc), one) << nproc << " ranks";
  }
  EXPECT_GT(one.at("metrics").at("dice").get<double>(), 0.8);  // nothing but the alpha tells
}

TEST(ImagesWithAlpha, AreEvaluatedPredictedAndGoneOnWith) {
  const TempDir dir;
  write_discs_in_alpha(dir / "data", 12, 2);
  const std::string run = dir / "run", weights = run + "/checkpoints/last.pt";
  ASSERT_EQ(run_of(train_discs(dir / "data", run, {"--channels", "2", "--nproc", "2", "--steps", "4"})).exit_code, 0);
  EXPECT_EQ(run_of({"eval", run, "--worst", "2", "--out", dir / "worst.png"}).exit_code, 0);
  EXPECT_EQ(run_of({"predict", run, "-i", dir / "data/imgs", "-o", dir / "masks"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(dir / "masks/0_mask.png"));
  EXPECT_EQ(run_of({"export", run, dir / "net.onnx"}).exit_code, 0);
  const auto resumed = run_of({"train", "--resume", run, "--steps", "6", "--nproc", "1"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(read_file(run + "/config.toml"), HasSubstr("channels = 2\n"));
}

TEST(ImagesWithAlpha, AreLeftOutWhereOneChannelIsAskedFor) {
  const TempDir dir;
  fs::create_directories(dir / "data/imgs");
  fs::create_directories(dir / "data/masks");
  for (int i = 0; i < 4; ++i) {
    image::Pixels colours, mask;
    colours.reshape({48, 48}, 3);
    mask.reshape({48, 48}, 1);
    for (int k = 0; k < 48 * 48; ++k) {
      for (int c = 0; c < 3; ++c) colours.at(k % 48, k / 48)[c] = static_cast<uint8_t>(k * (c + i) % 256);
      *mask.at(k % 48, k / 48) = k % 48 < 24 ? 0 : 255;
    }
    write_png(cat(dir / "data/imgs/", i, ".png"), colours);
    write_png(cat(dir / "data/masks/", i, ".png"), mask);
  }
  const std::string run = dir / "run";
  ASSERT_EQ(run_of(train_discs(dir / "data", run, {"--channels", "1", "--nproc", "1", "--steps", "2"})).exit_code, 0);
  EXPECT_EQ(run_of({"eval", run}).exit_code, 0);
  const auto predicted = run_of({"predict", run, "-i", dir / "data/imgs", "-o", dir / "masks"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
}

TEST(ImagesWithAlpha, ArePackedAndLookedAt) {
  const TempDir dir;
  write_discs_in_alpha(dir / "data", 6, 4);
  const auto packed = run_of({"pack", dir / "data", dir / "packed", "--shuffle", "off"});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const auto trained = [&](const std::string& data, const std::string& run) {
    EXPECT_EQ(run_of(train_discs(dir / data, dir / run, {"--channels", "4", "--nproc", "1", "--steps", "2"})).exit_code,
              0);
    return final_of(dir / run).value("weights_sha256", std::string("none of ") + run);
  };
  EXPECT_EQ(trained("packed", "a"), trained("data", "b"));
  const auto looked = run_of({"data", dir / "data", "--sheet", dir / "sheet.png"});
  EXPECT_EQ(looked.exit_code, 0) << looked.out << looked.err;
  EXPECT_EQ(run_of({"pack", dir / "data", dir / "small", "--size", "32"}).exit_code, 0);
  EXPECT_EQ(run_of({"pack", dir / "data", dir / "raw", "--codec", "raw"}).exit_code, DataError::kExitCode);
}

TEST(ImagesWithAlpha, OfAnotherKindThanTheNetworkTakesAreNamed) {
  const TempDir dir;
  write_discs_in_alpha(dir / "data", 4, 4);
  write_discs_in_alpha(dir / "grey", 4, 2);
  const std::string run = dir / "run", weights = run + "/checkpoints/last.pt";
  ASSERT_EQ(run_of(train_discs(dir / "data", run, {"--channels", "4", "--steps", "1", "--nproc", "1"})).exit_code, 0);
  const auto train = [&](const std::string& data, const Words& more) {
    return run_of(train_discs(dir / data, dir / "next", Words{"--steps", "1", "--nproc", "1"} + more));
  };
  expect_one_line(train("data", {"--channels", "2"}), DataError::kExitCode,
                  "/data/imgs/0.png: the network has 2 input channels, and the image 4 with its transparency");
  expect_one_line(train("grey", {"--channels", "2", "--load", weights}), DataError::kExitCode,
                  cat("the network of ", weights, " has 4 input channels, and the image is read with 2"));
  expect_one_line(run_of({"predict", run, "-i", dir / "data/masks/0.png", "-o", dir / "masks"}), DataError::kExitCode,
                  "/data/masks/0.png: the network has 4 input channels, and the image 1; save it with transparency");
  expect_one_line(train("data", {"--channels", "5"}), ConfigError::kExitCode, "--channels 5: ");
  expect_one_line(run_of({"train", "unet", "--channels", "4", "--steps", "1", "--out", dir / "drawn"}),
                  ConfigError::kExitCode, "--channels: goes with --data; drawn images have 3");
}

}  // namespace
}  // namespace lockstep::e2e
