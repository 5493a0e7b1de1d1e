#include "lockstep/datasets/open_pairs.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/testing/picture_files.h"
#include "lockstep/image/mask_value.h"
#include "lockstep/image/testing/encode_gif.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDir;
using testing::write_deep;

// The left half is of class 0, the right one of class 1.
image::Pixels halves(image::Size size, uint8_t right) {
  image::Pixels pixels = image::testing_support::flat(size, 1, 0);
  for (int y = 0; y < size.height; ++y) {
    for (int x = size.width / 2; x < size.width; ++x) *pixels.at(x, y) = right;
  }
  return pixels;
}

void write_pairs(const TempDir& dir, const std::string& prefix, int count, image::Size size, int channels = 3) {
  for (int i = 0; i < count; ++i) {
    write_deep(dir, cat(prefix, "imgs/", i, ".jpg"), testing::jpeg(size, static_cast<uint64_t>(i), channels));
    write_deep(dir, cat(prefix, "masks/", i, "_mask.gif"),
               testing::text_of(image::testing_support::encode_gif(halves(size, 1))));
  }
}

TEST(OpenPairs, OpensOneFolder) {
  const TempDir dir;
  write_pairs(dir, "", 3, {96, 64});
  const data::Splits splits = open_pairs({.path = dir.path(), .size = 32, .threads = 2});
  EXPECT_EQ(splits.train->size(), 3);
  EXPECT_EQ(splits.train->sample_shape(), (std::vector<int64_t>{3, 32, 48}));
  EXPECT_EQ(splits.train->classes(), 2);
  EXPECT_EQ(splits.usual_validation, 10);
  EXPECT_EQ(splits.test, nullptr);
  const auto plain = splits.train->for_evaluation();
  const data::Batch batch = data::read_batch(*plain, std::vector<int64_t>{0});
  EXPECT_EQ(batch.target()[0][5][3].item<int64_t>(), 0);
  EXPECT_EQ(batch.target()[0][5][40].item<int64_t>(), 1);
  EXPECT_THAT(splits.train->description(), HasSubstr("standard: RandomResizedCrop 48 x 32"));
}

// The palette of these GIFs makes colours of the numbers.
TEST(OpenPairs, TheMaskWithAClassTooManyIsNamed) {
  const TempDir dir;
  write_pairs(dir, "", 3, {96, 64});
  const auto refused = [&](std::optional<int> classes) {
    return lockstep::testing_support::refusal<ConfigError>(
        [&] { open_pairs({.path = dir.path(), .size = 32, .threads = 2, .classes = classes}); });
  };
  EXPECT_EQ(refused(1), "") << "one output tells two values apart";
  write_deep(dir, "masks/1_mask.gif", testing::text_of(image::testing_support::encode_gif(halves({96, 64}, 7))));
  for (const int few : {1, 2}) {
    EXPECT_THAT(refused(few), AllOf(HasSubstr(cat("--classes ", few, ": the masks have 3 values: ")),
                                    HasSubstr("masks/1_mask.gif has #07f807 beside #00ff07, #01fe07; "),
                                    HasSubstr("train with --classes 3 or more")));
  }
  EXPECT_EQ(refused(3), "");
  EXPECT_EQ(refused(std::nullopt), "");
}

TEST(OpenPairs, AnImageThatCanNotBeReadIsPassedOverWhereThatIsAllowed) {
  const TempDir dir;
  write_pairs(dir, "", 3, {96, 64}, /*channels=*/1);
  for (const int bad : {0, 1, 2}) {
    write_deep(dir, cat("imgs/", bad, ".jpg"), "text");
    const OpenOptions strict{.path = dir.path(), .size = 32},
        lenient{.path = dir.path(), .size = 32, .passes_over_bad = true};
    EXPECT_THAT(data_error([&] { open_pairs(strict); }), HasSubstr("0.jpg")) << bad;
    if (bad == 2) {
      EXPECT_THAT(data_error([&] { open_pairs(lenient); }), HasSubstr("0.jpg")) << "there is no other";
    } else {
      EXPECT_EQ(open_pairs(lenient).train->sample_shape(), (std::vector<int64_t>{1, 32, 48})) << bad;
    }
  }
}

TEST(OpenPairs, TrainsOnPartsAndEvaluatesWholeImages) {
  const TempDir dir;
  write_pairs(dir, "", 2, {96, 64});
  const auto train = open_pairs({.path = dir.path(), .scale = 1.0, .crop = 48}).train;
  EXPECT_EQ(train->sample_shape(), (std::vector<int64_t>{3, 48, 48}));
  const auto whole = train->for_evaluation();
  EXPECT_EQ(whole->sample_shape(), (std::vector<int64_t>{3, 64, 96}));
  std::set<int64_t> seen;  // how many pixels of class 1: parts lie anywhere
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    const data::Batch batch = data::read_batch(*train, std::vector<int64_t>{0}, epoch);
    EXPECT_EQ(batch.data().sizes().vec(), (std::vector<int64_t>{1, 3, 48, 48}));
    seen.insert(batch.target().sum().item<int64_t>());
  }
  EXPECT_GT(seen.size(), 3U);
  EXPECT_EQ(data::read_batch(*whole, std::vector<int64_t>{0}).target().sum().item<int64_t>(), 48 * 64);
}

// The findings of another rank or run, of files that changed long enough ago to be told from others.
TEST(OpenPairs, LooksAtTheSameFilesOnce) {
  const TempDir dir;
  write_pairs(dir, "", 3, {64, 64}, /*channels=*/1);
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  const OpenOptions first{.path = dir.path(), .size = 32, .findings = std::make_shared<data::Findings>()};
  const std::string looked = open_pairs(first).train->fingerprint(), text = first.findings->text();
  const std::string sizes = " 1 64 64 0\n",
                    values = cat(' ', image::mask_value(0, 255, 7), ' ', image::mask_value(1, 254, 7));
  ASSERT_THAT(text, AllOf(HasSubstr("images-2 "), HasSubstr(sizes), HasSubstr("mask-values-1 "), HasSubstr(values)));
  const auto open_with = [&](const std::string& kept) {
    return open_pairs({.path = dir.path(), .size = 32, .findings = std::make_shared<data::Findings>(kept)}).train;
  };
  EXPECT_EQ(open_with(text)->fingerprint(), looked);
  // What no look would find tells that there was none.
  std::string other = text;
  other.insert(other.find(values), " 7").replace(other.find(sizes), 2, " 3");
  EXPECT_THAT(open_with(other)->fingerprint(), HasSubstr("masks: 7 -> class 0"));
  EXPECT_EQ(open_with(other)->sample_shape()[0], 3);
  // So is a mask of the same size noticed.
  write_deep(dir, "masks/0_mask.gif", testing::text_of(image::testing_support::encode_gif(halves({64, 64}, 2))));
  EXPECT_THAT(open_with(other)->fingerprint(), Not(HasSubstr("masks: 7 -> class 0")));
  EXPECT_EQ(open_with(other)->classes(), 3);
  EXPECT_EQ(open_with(other)->sample_shape()[0], 1);
}

TEST(OpenPairs, OpensTrainAndVal) {
  const TempDir dir;
  write_pairs(dir, "train/", 3, {64, 64});
  write_pairs(dir, "val/", 2, {80, 64});
  const data::Splits splits = open_pairs({.path = dir.path(), .size = 64});
  ASSERT_NE(splits.test, nullptr);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_EQ(data::read_batch(*splits.test, std::vector<int64_t>{0, 1}).data().sizes(),
            (std::vector<int64_t>{2, 3, 64, 64}))
      << "of the training images' size";
}

TEST(OpenPairs, HasOneChannelWhereAllImagesAreGrey) {
  const TempDir dir;
  write_pairs(dir, "", 2, {64, 64}, 1);
  const auto grey = open_pairs({.path = dir.path(), .size = 64}).train;
  EXPECT_EQ(grey->sample_shape()[0], 1);
  EXPECT_THAT(grey->example(), ::testing::EndsWith("imgs/0.jpg"));
  write_deep(dir, "imgs/1.jpg", testing::jpeg({64, 64}));
  const auto coloured = open_pairs({.path = dir.path(), .size = 64}).train;
  EXPECT_EQ(coloured->sample_shape()[0], 3);
  EXPECT_THAT(coloured->for_evaluation()->example(), ::testing::EndsWith("imgs/1.jpg"));
}

// Of a picture whose alpha is 77.
std::string png_with_alpha(image::Size size, int channels) {
  image::Pixels pixels = image::testing_support::flat(size, channels, 20);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) pixels.at(x, y)[3] = 77;
  }
  return testing::text_of(image::encode_png(pixels));
}

void write_pairs_with_alpha(const TempDir& dir, int count, int channels) {
  write_pairs(dir, "", count, {48, 32});
  for (int i = 0; i < count; ++i) {
    std::filesystem::remove(dir / cat("imgs/", i, ".jpg"));
    write_deep(dir, cat("imgs/", i, ".png"), png_with_alpha({48, 32}, channels));
  }
}

TEST(OpenPairs, AlphaIsAChannelWhereThatIsAskedFor) {
  for (const int channels : {2, 4}) {
    const TempDir dir;
    write_pairs_with_alpha(dir, 3, channels);
    const data::Splits splits = open_pairs({.path = dir.path(), .size = 32, .channels = channels});
    EXPECT_EQ(splits.train->sample_shape(), (std::vector<int64_t>{channels, 32, 48}));
    EXPECT_THAT(splits.train->transforms(), HasSubstr(", alpha"));
    const auto plain = splits.train->for_evaluation();
    const at::Tensor image = data::read_batch(*plain, std::vector<int64_t>{0}).data()[0];
    EXPECT_TRUE(at::allclose(image[channels - 1], at::full({32, 48}, 77.0f / 255)));
    EXPECT_EQ(splits.train->example(), "");  // all are read so
  }
}

TEST(OpenPairs, AnImageWithoutTheAlphaThatIsAskedForIsNamedAtOnce) {
  const TempDir dir;
  write_pairs_with_alpha(dir, 3, 4);
  EXPECT_THAT(data_error([&] { open_pairs({.path = dir.path(), .size = 32, .channels = 2}); }),
              HasSubstr("imgs/0.png: the network has 2 input channels, and the image 4 with its transparency; save it "
                        "in grey, or train with --channels 4"));
  std::filesystem::remove(dir / "imgs/1.png");
  write_deep(dir, "imgs/1.jpg", testing::jpeg({48, 32}));
  EXPECT_THAT(data_error([&] { open_pairs({.path = dir.path(), .size = 32, .channels = 4}); }),
              HasSubstr("imgs/1.jpg: the network has 4 input channels, and the image 3; save it with transparency"));
}

TEST(OpenPairs, AnImageWithAlphaIsNamedWithTheOptionThatTakesIt) {
  const TempDir dir;
  write_pairs_with_alpha(dir, 2, 4);
  const auto splits = open_pairs({.path = dir.path(), .size = 32});
  EXPECT_THAT(data_error([&] { data::read_batch(*splits.train, std::vector<int64_t>{0}); }),
              HasSubstr("the network has 3 input channels, and the image 4 with its transparency; save it without, or "
                        "train with --channels 4"));
}

TEST(OpenPairs, ImagesOfColoursAreReadAsGreyWhereThatIsAskedFor) {
  const TempDir dir;
  write_pairs(dir, "", 2, {48, 32});
  const auto splits = open_pairs({.path = dir.path(), .size = 32, .channels = 1});
  EXPECT_EQ(splits.train->sample_shape(), (std::vector<int64_t>{1, 32, 48}));
}

TEST(OpenPairs, RoundsSidesTo16) {
  const TempDir dir;
  write_pairs(dir, "", 1, {120, 83});
  EXPECT_EQ(open_pairs({.path = dir.path(), .size = 40}).train->sample_shape(), (std::vector<int64_t>{3, 48, 64}));
  EXPECT_EQ(open_pairs({.path = dir.path(), .size = 1}).train->sample_shape(), (std::vector<int64_t>{3, 16, 16}));
}

TEST(OpenPairs, AsksOneRankForAllThatIsRead) {
  const TempDir dir;
  write_pairs(dir, "", 2, {64, 64});
  int asked = 0;
  const data::OnOneRank once = [&](const std::function<std::string()>& compute) {
    ++asked;
    return compute();
  };
  const auto here = open_pairs({.path = dir.path(), .size = 32}).train;
  EXPECT_EQ(open_pairs({.path = dir.path(), .size = 32, .on_one_rank = once}).train->fingerprint(),
            here->fingerprint());
  EXPECT_EQ(asked, 6) << "layout, folders, images, masks, their values, channels and size";
}

TEST(OpenPairs, RefusesLostPartnersByName) {
  const TempDir dir;
  write_pairs(dir, "", 3, {64, 64});
  write_deep(dir, "imgs/lost.jpg", "");
  EXPECT_THAT(data_error([&] { open_pairs({.path = dir.path()}); }),
              HasSubstr("1 of 4 images have no mask: imgs/lost.jpg; add"));
  std::filesystem::remove(dir / "imgs/lost.jpg");
  std::filesystem::remove(dir / "imgs/0.jpg");
  EXPECT_THAT(data_error([&] { open_pairs({.path = dir.path()}); }),
              HasSubstr("1 of 3 masks have no image: masks/0_mask.gif; add"));
}

TEST(OpenPairs, RefusesClassFolders) {
  const TempDir dir;
  testing::write_classes(dir, "", {"cats"}, 1);
  EXPECT_THAT(data_error([&] { open_pairs({.path = dir.path()}); }),
              AllOf(HasSubstr("no images and masks"), HasSubstr("found 1 folder (cats)")));
}

// 24 micrographs, where a clone has them beside itself.
TEST(OpenPairs, OpensTheMembrane) {
  const std::string path = LOCKSTEP_SOURCE_DIR "/../shared/data/membrane";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const data::Splits splits = open_pairs({.path = path, .size = 256, .threads = 2});
  ASSERT_EQ(splits.train->size(), 24);
  EXPECT_EQ(splits.train->sample_shape(), (std::vector<int64_t>{1, 256, 256}));
  EXPECT_EQ(splits.train->classes(), 2);
  EXPECT_THAT(splits.train->description(), HasSubstr("masks: 0 -> class 0, 255 -> class 1"));
  std::vector<int64_t> all(24);
  std::iota(all.begin(), all.end(), 0);
  const double share = data::read_batch(*splits.train, all).target().to(at::kFloat).mean().item<double>();
  EXPECT_GT(share, 0.05);
  EXPECT_LT(share, 0.95);
}

}  // namespace
}  // namespace lockstep::datasets
