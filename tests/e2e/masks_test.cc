// `lockstep train unet --data`: folders of one's own pictures and their masks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "lockstep/base/env.h"
#include "lockstep/base/testing/long_test.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/testing/pictures.h"
#include "lockstep/parallel/options/lanes.h"
#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

// What a start has found lies in the run's folder, of files that changed long enough ago to be told from others.
TEST(Masks, AreScannedAgainByAResumeOnlyWhereTheyChanged) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 6);
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  const auto train = [&](const Words& more) {
    return lockstep(train_masks(dir / "pairs", dir / "run", {"--nproc", "2"}) + more, ".", std::chrono::seconds(100));
  };
  const std::string scan = dir / "run/data.scan";
  const auto kept = [&] {
    std::ifstream file(scan);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  ASSERT_EQ(train({"--steps", "1"}).exit_code, 0);
  const std::string found = kept();
  ASSERT_THAT(found, HasSubstr("mask-values-1 ")) << "images and masks";
  const auto resume = [&](const char* steps) {
    return lockstep({"train", "--resume", dir / "run", "--steps", steps}, ".", std::chrono::seconds(100));
  };
  ASSERT_EQ(resume("2").exit_code, 0);
  EXPECT_EQ(kept(), found);
  // What no scan would find tells that there was none.
  std::string other = found;
  other.insert(other.find(" 0 ", other.find("mask-values")), " 0 7").erase(other.rfind(" 0 "), 2);
  std::ofstream(scan) << other;
  const auto refused = resume("3");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("7 -> class 1")) << "the kept values";
  EXPECT_EQ(lockstep({"eval", dir / "run"}).exit_code, 65) << "it looks there, too";
  fs::last_write_time(dir / "pairs/masks/3.png", fs::file_time_type::clock::now());
  EXPECT_EQ(resume("3").exit_code, 0) << "the masks' times tell";
  EXPECT_EQ(steps_logged(dir / "run"), first_steps(3));
  EXPECT_THAT(kept(), Not(HasSubstr(" 0 7"))) << "what is kept of them, if enough time has gone by, is their own";
}

// A line of Pytorch-UNet's descendants, with all of their options.
TEST(MilesialsUNet, TrainsWithItsOwnOptions) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 10);
  const Words usual = {"train", "unet", "--preset", "milesial", "--data",  dir / "pairs", "--width",   "4",
                       "-s",    "0.5",  "-c",       "1",        "--lanes", "4",           "--threads", "1"};
  const auto first =
      lockstep(usual + Words{"--bilinear", "-e", "1", "--exp_name", "first"}, dir.path(), std::chrono::seconds(200));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  nlohmann::json one;
  for (const std::string nproc : {"1", "4"}) {
    const Words line = usual + Words{"-e",           "3",     "-b",           "2",
                                     "-l",           "0.001", "-f",           "runs/first/checkpoints/last.pt",
                                     "-v",           "20",    "--amp",        "--bilinear",
                                     "--exp_name",   nproc,   "--save_every", "2",
                                     "--start_from", "7",     "--nproc",      nproc};
    const auto result = lockstep(line, dir.path(), std::chrono::seconds(200));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string run = dir / ("runs/" + nproc);
    if (one.is_null()) one = outcome_of(run);
    EXPECT_EQ(outcome_of(run), one) << nproc << " ranks";
    EXPECT_EQ(one.at("metrics").at("dice_per_class").size(), 1u);
    EXPECT_THAT(read_file(run + "/metrics.jsonl"), HasSubstr("\"epoch\":7,"));
    EXPECT_THAT(read_file(run + "/metrics.jsonl"), HasSubstr("\"epoch\":9,"));
    EXPECT_TRUE(fs::exists(run + "/checkpoints/step-000002.pt")) << "two epochs of a step each";
    EXPECT_THAT(read_file(run + "/config.toml"),
                AllOf(HasSubstr("save-every = '2epochs'"), HasSubstr("eval-every = '5/epoch'")));
  }
  const auto predicted = lockstep({"predict", "runs/1", "-i", "pairs/imgs", "-o", "out"}, dir.path());
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_TRUE(fs::exists(dir / "out/1_mask.png"));
}

TEST(MilesialsUNet, EachOfItsOptionsTakesEffect) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 10);
  const Words usual = {"train",   "unet", "--preset", "milesial", "--data",    dir / "pairs",
                       "--width", "4",    "--lanes",  "1",        "--threads", "1"};
  const auto run = [&](const std::string& name, const Words& more) {
    Words line = usual + more + Words{"--exp_name", name};
    for (const auto& [flag, value] : {std::pair{"-e", "1"}, {"-b", "2"}, {"-l", "0.01"}}) {
      if (std::find(more.begin(), more.end(), flag) == more.end()) line = line + Words{flag, value};
    }
    const auto result = lockstep(line, dir.path());
    EXPECT_EQ(result.exit_code, 0) << name << ": " << result.err;
    return result.out;
  };
  const auto weights = [&](const std::string& name) {
    return final_of(dir / ("runs/" + name)).at("weights_sha256").get<std::string>();
  };
  EXPECT_THAT(run("base", {}), HasSubstr("network     1 input channel, 2 classes, up-sampling by transposed"));
  const std::map<std::string, Words> others = {
      {"epochs", {"-e", "2"}},      {"batch", {"-b", "3"}},
      {"rate", {"-l", "0.001"}},    {"load", {"-f", "runs/base/checkpoints/last.pt"}},
      {"scale", {"-s", "0.25"}},    {"validation", {"-v", "40"}},
      {"classes", {"-c", "1"}},     {"half", {"--amp", "O1"}},
      {"bilinear", {"--bilinear"}}, {"seventh", {"--start_from", "7"}},
  };
  std::set<std::string> seen = {weights("base")};
  for (const auto& [name, words] : others) {
    run(name, words);
    EXPECT_TRUE(seen.insert(weights(name)).second) << name << " has changed nothing";
  }
  run("amp", {"--amp"});  // what is fastest here, which is fp32 where the CPU multiplies no 16-bit numbers
  const bool casts = read_file(dir / "runs/amp/config.toml").find("amp = 'O1'") != std::string::npos;
  EXPECT_EQ(weights("amp") != weights("base"), casts);
  const auto rates = [&](const std::string& name) {
    std::vector<double> all;
    for (const auto& record : records_of(dir / ("runs/" + name), "train")) all.push_back(record.at("lr"));
    return all;
  };
  EXPECT_EQ(rates("seventh"), rates("base")) << "a fresh schedule";
  run("every", {"-e", "2", "--save_every", "1", "--ddp_mode"});
  EXPECT_EQ(weights("every"), weights("epochs")) << "neither has to do with the weights";
}

// The preset is of one rank; the option makes as many as suit the cores and lanes, of the same bits.
TEST(MilesialsUNet, DdpModeTrainsOnAllCores) {
  const int all = parallel::fitting_nproc(usable_cores(), /*lanes=*/4);
  if (all < 2) GTEST_SKIP() << "one core, which has no second rank";
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 10);
  const Words usual = {"train",   "unet", "--preset",  "milesial", "--data", dir / "pairs", "--width", "4",
                       "--lanes", "4",    "--threads", "1",        "-e",     "1",           "-s",      "0.5"};
  const auto ranks_of = [&](const std::string& name, const Words& more) {
    const auto result = lockstep(usual + more + Words{"--out", dir / name});
    EXPECT_EQ(result.exit_code, 0) << name << ": " << result.err;
    return final_of(dir / name).value("world_size", 0);
  };
  ASSERT_EQ(ranks_of("alone", {}), 1);
  for (const std::string flag : {"--ddp_mode", "--ddp-mode"}) {
    EXPECT_EQ(ranks_of(flag, {flag}), all) << flag;
    EXPECT_EQ(outcome_of(dir / flag), outcome_of(dir / "alone")) << flag;
  }
}

TEST(Masks, AreEvaluatedAsOftenAnEpochAsTheLineSays) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 12);
  const auto evaluated = [&](const std::string& name, const Words& more) {
    const Words line = {"train",   "unet", "--data",       dir / "pairs", "--size",       "32",      "--width",  "4",
                        "--lanes", "1",    "--batch-size", "1",           "--validation", "20",      "--epochs", "2",
                        "--nproc", "1",    "--threads",    "1",           "--out",        dir / name};
    const auto result = lockstep(line + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(steps_logged(dir / name), first_steps(20)) << "two epochs of ten steps";
    std::map<int64_t, std::vector<int64_t>> steps;  // of each epoch
    for (const auto& record : records_of(dir / name, "eval")) {
      if (record.at("split") == "validation") steps[record.at("epoch")].push_back(record.at("step"));
    }
    return steps;
  };
  using Steps = std::map<int64_t, std::vector<int64_t>>;
  EXPECT_EQ(evaluated("fifths", {"--eval-every", "5/epoch"}),
            (Steps{{1, {2, 4, 6, 8, 10}}, {2, {12, 14, 16, 18, 20}}}));
  EXPECT_EQ(evaluated("usual", {}), (Steps{{1, {10}}, {2, {20}}}));
}

TEST(Masks, OneWithAClassTooManyIsNamed) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 3);
  image::Pixels mask = image::testing_support::flat({96, 96}, 1, 0);
  for (int x = 0; x < 9; ++x) *mask.at(x, 3) = 128;
  const auto bytes = image::encode_png(mask);
  write_file(dir / "pairs/masks/2.png", std::string(bytes.begin(), bytes.end()));
  for (const char* ranks : {"1", "2"}) {
    const auto result = lockstep(train_masks(dir / "pairs", dir / "run", {"--nproc", ranks, "--classes", "2"}));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err, "error: --classes 2: the masks have 3 values: " + (dir / "pairs/masks/2.png") +
                              " has 128 beside 0, 255; mend that mask, or train with --classes 3 or more, or without "
                              "it\n");
  }
  EXPECT_FALSE(fs::exists(dir / "run"));
  const auto taken = lockstep(train_masks(dir / "pairs", dir / "run", {"--steps", "1", "--classes", "3"}));
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
}

TEST(MilesialsUNet, OneOutputTakesMasksOfTwoValuesOnly) {
  const TempDir dir;
  const auto result = lockstep({"train", "unet", "-c", "1", "--steps", "1", "--out", dir / "run"}, dir.path());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--classes 1: the masks have 4 values; leave it out, or give 4 or more"));
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

template <typename Grey>
void write_grey_png(const std::string& path, int side, const Grey& grey_at) {
  image::Pixels pixels;
  pixels.reshape({side, side}, 1);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) pixels.row(y)[x] = static_cast<uint8_t>(grey_at(x, y));
  }
  const auto bytes = image::encode_png(pixels);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

// The settings are the recipe's own for such data.
TEST(Micrographs, GetTheirSettingsWithoutAPreset) {
  const TempDir dir;
  fs::create_directories(dir / "pairs/imgs");
  fs::create_directories(dir / "pairs/masks");
  for (int i = 0; i < 6; ++i) {
    write_grey_png(dir / cat("pairs/imgs/", i, ".png"), 448, [i](int x, int y) { return (x * y + i) % 256; });
    write_grey_png(dir / cat("pairs/masks/", i, ".png"), 448, [](int x, int) { return x < 224 ? 0 : 255; });
  }
  const auto train = [&](const Words& more) {
    const auto result = lockstep(Words{"train", "unet", "--data", dir / "pairs", "--hold-out", "3.png", "--steps", "1",
                                       "--ema", "0", "--lr", "0.001"} +
                                 more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_THAT(train({"--out", dir / "a"}), HasSubstr("--preset micrographs"));
  const std::string config = read_file(dir / "a/config.toml");
  for (const char* line : {"crop = 448", "half-size = true", "width = 16", "views = 8", "lanes = 4", "threads = 1"}) {
    EXPECT_THAT(config, HasSubstr(line));
  }
  train({"--preset", "none", "--size", "32", "--width", "4", "--out", dir / "b"});
  EXPECT_THAT(read_file(dir / "b/config.toml"), Not(HasSubstr("crop")));
  EXPECT_THAT(train({"--width", "4", "--size", "32", "--out", dir / "c"}), Not(HasSubstr("preset")));
  const auto resumed = lockstep({"train", "--resume", dir / "a", "--steps", "2"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(steps_logged(dir / "a"), first_steps(2));
}

}  // namespace
}  // namespace lockstep::e2e
