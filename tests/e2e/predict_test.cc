// `lockstep predict`: what a network makes of files is what its evaluation made of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "digits.h"
#include "lockstep/base/cpu_features.h"
#include "lockstep/image/decoder.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/testing/pictures.h"
#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

// The class of each pixel of a mask's PNG.
std::vector<bool> pixels_of(const std::string& path) {
  const std::string bytes = read_file(path);
  image::Decoder decoder;
  const image::Size size =
      decoder.open({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, path, {.channels = 1}).upright();
  image::Pixels pixels;
  decoder.decode({0, 0, size.width, size.height}, size, pixels);
  std::vector<bool> classes;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) classes.push_back(*pixels.at(x, y) > 127);
  }
  return classes;
}

TEST(Predict, ClassesAreThoseOfTheEvaluation) {
  const TempDir dir;
  write_class_folders(dir / "photos/train", 3, 12);
  write_class_folders(dir / "photos/val", 3, 6, /*seed=*/2);
  const std::string run = dir / "run";
  ASSERT_EQ(lockstep({"train", "imagenet", "--data", dir / "photos", "--arch", "mobilenet_v2", "--size", "64",
                      "--epochs", "4", "--lr", "0.02", "--nproc", "2", "--out", run},
                     ".", std::chrono::seconds(200))
                .exit_code,
            0);
  const auto found = lockstep({"predict", run, "-i", dir / "photos/val", "--format", "json", "--batch-size", "5"});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  std::istringstream lines(found.out);
  int images = 0, right = 0;
  for (std::string line; std::getline(lines, line); ++images) {
    const auto image = nlohmann::json::parse(line);
    ASSERT_EQ(image.at("classes").size(), 3U);
    const std::string name = image.at("classes").at(0).at("name");
    right += fs::path(image.at("file").get<std::string>()).parent_path().filename() == name ? 1 : 0;
  }
  EXPECT_EQ(images, 18);
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / images, final_of(run).at("metrics").at("top1").get<double>());

  // The same as a table, in a file; and of weights alone, by their numbers.
  const std::string table = dir / "classes.csv", weights = dir / "weights.safetensors";
  ASSERT_EQ(
      lockstep({"predict", run, "-i", dir / "photos/val", "-o", table, "--format", "csv", "--top", "1"}).exit_code, 0);
  EXPECT_THAT(read_file(table),
              MatchesRegex("file,class_1,probability_1\n(.*/class_0[0-2]/.*,class_0[0-2],[01]\\.[0-9]*\n)*"));
  ASSERT_EQ(lockstep({"convert", run, weights}).exit_code, 0);
  const auto foreign = lockstep({"predict", "imagenet", "--arch", "mobilenet_v2", "--size", "64", "--load", weights,
                                 "-i", dir / "photos/val/class_00/0.jpg", "--top", "1"});
  EXPECT_EQ(foreign.exit_code, 0) << foreign.err;
  EXPECT_THAT(foreign.out, MatchesRegex(".*/0.jpg: [0-2] [01]\\.[0-9]*\n"));
}

TEST(Predict, MasksAreThoseOfTheEvaluation) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 24);
  write_image_and_mask_folders(dir / "others", 5, /*seed=*/7);
  const std::string run = dir / "run", masks = dir / "masks";
  ASSERT_EQ(lockstep({"train", "unet", "--data", dir / "pairs", "--size", "96", "--width", "4", "--epochs", "6", "--lr",
                      "0.01", "--bilinear", "--nproc", "2", "--out", run},
                     ".", std::chrono::seconds(200))
                .exit_code,
            0);
  const auto found = lockstep({"predict", run, "-i", dir / "others/imgs", "-o", masks});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("imgs/0.png: " + masks + "/0_mask.png, class 1 "));
  double both = 0, either = 0;
  for (int i = 0; i < 5; ++i) {
    const std::string name = std::to_string(i);
    EXPECT_TRUE(fs::exists(masks + '/' + name + "_overlay.png"));
    const auto here = pixels_of(masks + '/' + name + "_mask.png"),
               there = pixels_of(dir / "others/masks/" + name + ".png");
    ASSERT_EQ(here.size(), there.size()) << "the mask has the image's size";
    for (size_t p = 0; p < here.size(); ++p) {
      both += here[p] && there[p] ? 1 : 0;
      either += (here[p] ? 1 : 0) + (there[p] ? 1 : 0);
    }
  }
  const auto own = lockstep({"predict", run, "-i", dir / "others/imgs", "-o", dir / "others/imgs"});
  EXPECT_EQ(own.exit_code, 2);
  EXPECT_THAT(own.err, HasSubstr("the images themselves lie there"));
  const auto evaluated = lockstep({"eval", run, "--data", dir / "others", "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const double dice = nlohmann::json::parse(evaluated.out).at("dice").get<double>();
  EXPECT_GT(dice, 0.1) << "else nothing was learnt";
  EXPECT_NEAR(2 * both / either, dice, 1e-9);
}

// Writes digits of the kind that digits_folder() has as PNGs.
void write_digit_pictures(const std::string& folder, uint32_t count, uint32_t seed) {
  constexpr size_t kHeader = 16;  // bytes of an idx file of images
  constexpr int kSide = 28;
  const std::string values = images(count, seed);
  fs::create_directories(folder);
  for (uint32_t i = 0; i < count; ++i) {
    image::Pixels pixels = image::testing_support::flat({kSide, kSide}, 1, 0);
    for (int y = 0; y < kSide; ++y) {
      const size_t row = kHeader + (size_t{i} * kSide + static_cast<size_t>(y)) * kSide;
      for (int x = 0; x < kSide; ++x) *pixels.at(x, y) = static_cast<uint8_t>(values[row + static_cast<size_t>(x)]);
    }
    const auto bytes = image::encode_png(pixels);
    write_file(folder + "/" + std::to_string(i) + ".png", std::string(bytes.begin(), bytes.end()));
  }
}

// bf16 that a CPU can't even emulate by its vectors takes minutes.
bool computes_in_bf16() {
  const CpuFeatures cpu = detect_cpu_features();
  return cpu.avx512 || cpu.avx512_bf16 || cpu.amx_bf16;
}

TEST(PredictIn16Bits, MasksAreNearlyThoseOfFp32) {
  if (!computes_in_bf16()) GTEST_SKIP() << "this CPU has no vectors for bf16";
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 24);
  write_image_and_mask_folders(dir / "others", 5, /*seed=*/7);
  const std::string run = dir / "run";
  ASSERT_EQ(lockstep({"train", "unet", "--data", dir / "pairs", "--size", "96", "--width", "4", "--epochs", "6", "--lr",
                      "0.01", "--bilinear", "--nproc", "2", "--out", run})
                .exit_code,
            0);
  for (const std::string level : {"O0", "O3"}) {
    const auto found =
        lockstep({"predict", run, "-i", dir / "others/imgs", "-o", dir / level, "--amp", level, "--dtype", "bf16"});
    ASSERT_EQ(found.exit_code, 0) << found.err;
  }
  int64_t same = 0, all = 0, ones = 0;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "/" + std::to_string(i) + "_mask.png";
    const auto fp32 = pixels_of(dir / ("O0" + name)), bf16 = pixels_of(dir / ("O3" + name));
    ASSERT_EQ(fp32.size(), bf16.size());
    for (size_t p = 0; p < fp32.size(); ++p) {
      same += fp32[p] == bf16[p] ? 1 : 0;
      ones += fp32[p] ? 1 : 0;
    }
    all += std::ssize(fp32);
  }
  EXPECT_GT(ones, all / 50) << "else nothing was learnt";
  EXPECT_LT(ones, all - all / 50);
  EXPECT_GE(static_cast<double>(same) / static_cast<double>(all), 0.99);
}

TEST(PredictIn16Bits, ClassesAreThoseOfFp32) {
  if (!computes_in_bf16()) GTEST_SKIP() << "this CPU has no vectors for bf16";
  const TempDir dir;
  constexpr uint32_t kCount = 100;
  write_digit_pictures(dir / "digits", kCount, /*seed=*/5);
  const std::string run = dir / "run";
  ASSERT_EQ(lockstep(train_words({"--epochs", "12", "--nproc", "2", "--lr", "0.05", "--out", run})).exit_code, 0);
  std::map<std::string, std::vector<nlohmann::json>> found;
  for (const std::string level : {"O0", "O3"}) {
    const auto result =
        lockstep({"predict", run, "-i", dir / "digits", "--format", "json", "--amp", level, "--dtype", "bf16"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      found[level].push_back(nlohmann::json::parse(line).at("classes").at(0));
    }
    ASSERT_EQ(found[level].size(), kCount);
  }
  std::set<nlohmann::json> classes;
  size_t same = 0;
  for (size_t i = 0; i < kCount; ++i) {
    classes.insert(found["O0"][i].at("class"));
    same += found["O0"][i].at("class") == found["O3"][i].at("class") ? 1 : 0;
  }
  EXPECT_GT(classes.size(), 5U) << "else nothing was learnt";
  EXPECT_GE(same, kCount * 99 / 100);
  EXPECT_NE(found["O0"], found["O3"]) << "else O3 computed in fp32";
}

TEST(EvaluatedClasses, AreCountedByWhatTheyAreTakenFor) {
  nlohmann::json one;
  for (const std::string nproc : {"1", "2"}) {
    const auto result = lockstep({"eval", finished_run(), "--confusion", "--json", "--nproc", nproc});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto all = nlohmann::json::parse(result.out);
    if (one.is_null()) one = all.at("confusion");
    EXPECT_EQ(all.at("confusion"), one) << nproc << " ranks";
    int64_t samples = 0, right = 0;
    for (size_t row = 0; row < one.size(); ++row) {
      for (size_t column = 0; column < one.size(); ++column) {
        samples += one[row][column].get<int64_t>();
        if (row == column) right += one[row][column].get<int64_t>();
      }
    }
    EXPECT_EQ(one.size(), 10U);
    EXPECT_EQ(samples, all.at("samples").get<int64_t>());
    EXPECT_DOUBLE_EQ(static_cast<double>(right) / static_cast<double>(samples), all.at("accuracy").get<double>());
  }
  const auto shown = lockstep({"eval", finished_run(), "--confusion"});
  EXPECT_THAT(shown.out, HasSubstr("true classes by rows, predicted ones by columns"));
}

// As a pipe gives it.
TEST(Predict, StandardInputIsAnImage) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 1);
  const auto piped = [&](const std::string& file) {
    const std::string line =
        "cat " + file + " | " + LOCKSTEP_BIN_DIR "/lockstep predict " + finished_run() + " --input - --top 1";
    return Program({.command = {"/bin/sh", "-c", line}}).wait();
  };
  const auto found = piped(dir / "pairs/imgs/0.png");
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const auto same = lockstep({"predict", finished_run(), "-i", dir / "pairs/imgs/0.png", "--top", "1"});
  EXPECT_THAT(found.out, StartsWith("standard input: "));
  EXPECT_EQ(found.out.substr(found.out.find(": ")), same.out.substr(same.out.find(": ")));
  write_file(dir / "bad.png", "not an image");
  const auto refused = piped(dir / "bad.png");
  EXPECT_EQ(refused.exit_code, 65);
  EXPECT_THAT(refused.err, StartsWith("error: standard input: it is no image"));
}

TEST(Predict, BadInputIsOneLine) {
  const TempDir dir;
  write_file(dir / "bad.png", "not an image");
  fs::create_directory(dir / "empty");
  write_image_and_mask_folders(dir / "pairs", 1);
  const std::string run = finished_run();
  const auto refused = [&](const Words& words, int code) {
    const auto result = lockstep(Words{"predict"} + words);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    return result.err;
  };
  EXPECT_THAT(refused({run, "-i", dir / "bad.png"}, 65), HasSubstr("bad.png: it is no image"));
  fs::create_directory(dir / "some");
  fs::copy_file(dir / "bad.png", dir / "some/1.png");
  for (const std::string name : {"0.png", "2.png"}) fs::copy_file(dir / "pairs/imgs/0.png", dir / ("some/" + name));
  fs::create_symlink("nothing", dir / "some/3.png");
  const auto some = lockstep({"predict", run, "-i", dir / "some", "--top", "1"});
  EXPECT_EQ(some.exit_code, 65);
  EXPECT_EQ(std::count(some.out.begin(), some.out.end(), '\n'), 2) << "the others are told: " << some.out;
  EXPECT_THAT(some.err, AllOf(HasSubstr("warning: "), HasSubstr("some/1.png: it is no image"), HasSubstr("some/3.png"),
                              HasSubstr("error: 2 of 4 images could not be read")));
  EXPECT_THAT(refused({run, "-i", dir / "empty"}, 65), HasSubstr("empty: no images"));
  EXPECT_THAT(refused({run}, 2), HasSubstr("-i IN is missing"));
  EXPECT_THAT(refused({run, "-i", dir / "none.png"}, 2), HasSubstr("no such file or folder"));
  EXPECT_THAT(refused({"unet", "--load", run + "/checkpoints/last.pt", "-i", dir / "bad.png"}, 2),
              HasSubstr("so its weights are not those of unet"));
}

}  // namespace
}  // namespace lockstep::e2e
