#include "lockstep/predict/worst_sheet.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/image/decoder.h"

namespace lockstep::predict {
namespace {

using ::testing::HasSubstr;

image::Pixels written(const WorstSheet& sheet) {
  const testing_support::TempDir dir;
  const std::string path = dir / "sheet.png";
  sheet.write(path);
  std::vector<uint8_t> memory;
  image::Decoder decoder;
  const image::Size size = decoder.open(datasets::read_whole(path, memory), path, {.channels = 3}).upright();
  image::Pixels pixels;
  decoder.decode({0, 0, size.width, size.height}, size, pixels);
  return pixels;
}

constexpr int kBetween = image::Sheet::kBetween, kCell = image::Sheet::kCell, kGap = image::Sheet::kGap;

TEST(WorstSheet, ShowsClassesInFrames) {
  WorstSheet sheet(2, /*masks=*/false, {"cat", "dog"});
  const at::Tensor image = at::rand({3, 20, 20}), cat_sure = at::tensor({20.0f, 0.0f});
  sheet.add({5, 0.1}, "a.jpg", image, at::tensor(1, at::kLong), cat_sure);
  sheet.add({2, 0.9}, "b.jpg", image, at::tensor(0, at::kLong), cat_sure);
  const image::Pixels pixels = written(sheet);
  EXPECT_EQ(pixels.at(kBetween - 4, kBetween + 9)[0], 255) << "wrong";
  EXPECT_EQ(pixels.at(kBetween - 4 + kCell + kBetween, kBetween + 9)[1], 230) << "right";
  EXPECT_THAT(sheet.text("sheet.png"), HasSubstr("\n  a.jpg: is dog (0.1000), predicted cat (1.0000)\n"));
  EXPECT_EQ(sheet.json()[0].dump().substr(0, 76),
            R"({"index":5,"sample":"a.jpg","score":0.1,"true":"dog","predicted":"cat","prob)");
}

TEST(WorstSheet, ShowsMasksThreeTimes) {
  WorstSheet sheet(1, /*masks=*/true, {});
  const at::Tensor image = at::full({1, 40, 40}, 0.5f), mask = at::ones({40, 40}, at::kLong);
  at::Tensor scores = at::zeros({2, 40, 40});
  scores[0].fill_(1);
  sheet.add({0, std::nan("")}, "c.png", image, mask, scores);
  const image::Pixels pixels = written(sheet);
  EXPECT_EQ(pixels.width(), 3 * kCell + 2 * kGap + 2 * kBetween);
  const auto red = [&](int picture) { return pixels.at(kBetween + picture * (kCell + kGap) + 80, kBetween + 80)[0]; };
  EXPECT_EQ(red(0), 0) << "an even image";
  EXPECT_EQ(red(1), 255 * 2 / 5) << "of the true class";
  EXPECT_EQ(red(2), 0) << "predicted is class 0";
  EXPECT_THAT(sheet.text("sheet.png"), HasSubstr("c.png: Dice nan"));
  EXPECT_TRUE(sheet.json()[0]["score"].is_null());
}

TEST(WorstSheet, RefusesSamplesThatAreNoImages) {
  WorstSheet sheet(1, /*masks=*/false, {});
  EXPECT_THROW(sheet.add({0, 0.1}, "sample 0", at::zeros({5}), at::tensor(1, at::kLong), at::zeros({2})), ConfigError);
  EXPECT_THROW(sheet.write("/dev/full"), IoError);
}

}  // namespace
}  // namespace lockstep::predict
