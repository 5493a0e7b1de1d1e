#include "lockstep/datasets/open_images.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_classes;

TEST(OpenImages, OpensOneFolderOfClasses) {
  const TempDir dir;
  write_classes(dir, "", {"cats", "dogs"}, 2);
  const data::Splits splits = open_images({.path = dir.path(), .size = 32});
  EXPECT_EQ(splits.train->size(), 4);
  EXPECT_EQ(splits.train->sample_shape(), (std::vector<int64_t>{3, 32, 32}));
  EXPECT_NE(splits.train->for_evaluation(), nullptr);
  EXPECT_EQ(splits.test, nullptr);
  EXPECT_EQ(splits.validation, nullptr);
  EXPECT_EQ(splits.usual_validation, 10);
}

TEST(OpenImages, OpensTrainAndVal) {
  for (const char* name : {"val", "validation", "valid", "test"}) {
    const TempDir dir;
    write_classes(dir, "train/", {"cats", "dogs", "eels"}, 2);
    write_classes(dir, cat(name, "/"), {"dogs"}, 1);
    const data::Splits splits = open_images({.path = dir.path(), .size = 32});
    EXPECT_EQ(splits.train->size(), 6);
    ASSERT_NE(splits.test, nullptr) << name;
    EXPECT_EQ(splits.test->class_of(0), 1) << "numbers are the training part's";
    EXPECT_EQ(splits.test->classes(), 3);
    EXPECT_EQ(splits.test->for_evaluation(), nullptr);
  }
}

TEST(OpenImages, OpensTrainAloneAndLeavesATestFolderWithoutClassesOut) {
  const TempDir dir;
  write_classes(dir, "train/", {"cats", "dogs"}, 1);
  testing::write_deep(dir, "test/1.jpg", testing::jpeg());
  const data::Splits splits = open_images({.path = dir.path()});
  EXPECT_EQ(splits.test, nullptr);
  EXPECT_EQ(splits.train->size(), 2);
}

TEST(OpenImages, NormalisesAsImageNet) {
  const TempDir dir;
  for (const char* name : {"black", "white"}) {
    const auto pixels = image::testing_support::flat({50, 40}, 3, name[0] == 'b' ? 0 : 255);
    testing::write_deep(dir, cat(name, "/1.png"), testing::text_of(image::encode_png(pixels)));
  }
  const data::Splits splits = open_images({.path = dir.path(), .size = 16});
  const at::Tensor data = data::read_batch(*splits.train, std::vector<int64_t>{0, 1}).data();
  EXPECT_FLOAT_EQ(data[0][0][0][0].item<float>(), -0.485f / 0.229f);
  EXPECT_FLOAT_EQ(data[1][2][15][15].item<float>(), (1 - 0.406f) / 0.225f);
}

TEST(OpenImages, RefusesWhatItIsNotAndSaysWhatWasLookedFor) {
  const TempDir dir;
  dir.write("1.jpg", testing::jpeg());
  EXPECT_THAT(data_error([&] { open_images({.path = dir.path()}); }),
              AllOf(HasSubstr("looked for train/ and val/"), HasSubstr("found no folders and 1 file (1.jpg)")));
  EXPECT_THAT(data_error([&] { open_images({.path = dir / "none"}); }), HasSubstr("nothing is there"));
  EXPECT_THAT(data_error([&] { open_images({.path = dir / "1.jpg"}); }), HasSubstr("found a file"));
  const TempDir pairs;
  testing::write_deep(pairs, "imgs/1.png", "");
  testing::write_deep(pairs, "masks/1.png", "");
  EXPECT_THAT(data_error([&] { open_images({.path = pairs.path()}); }), HasSubstr("lockstep train unet"));
  const TempDir mnist;
  mnist.write("train-images-idx3-ubyte", "");
  EXPECT_THAT(data_error([&] { open_images({.path = mnist.path()}); }), HasSubstr("lockstep train mnist"));
}

// Rather than hold a tenth of the training part out.
TEST(OpenImages, RefusesAPartToTestOnWithoutClassFolders) {
  const TempDir dir;
  testing::write_classes(dir, "train/", {"cats", "dogs"}, 2);
  std::filesystem::create_directory(dir / "val");
  EXPECT_THAT(data_error([&] { open_images({.path = dir.path()}); }), HasSubstr("val: no class folders with images"));
  dir.write("val/1.jpg", testing::jpeg());
  EXPECT_THAT(data_error([&] { open_images({.path = dir.path()}); }),
              AllOf(HasSubstr("val: no class folders"), HasSubstr("move its 1 image")));
}

// 250 photographs of 250 classes, where a clone has them beside itself.
TEST(OpenImages, ReadsAllPhotographs) {
  const std::string path = LOCKSTEP_SOURCE_DIR "/../shared/data/photos";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const data::Splits splits = open_images({.path = path, .size = 64});
  ASSERT_EQ(splits.train->size(), 250);
  EXPECT_EQ(splits.train->classes(), 250);
  std::vector<int64_t> all(250);
  std::iota(all.begin(), all.end(), 0);
  const data::Batch batch = data::read_batch(*splits.train, all);
  EXPECT_TRUE(at::equal(batch.target(), at::arange(250)));
  EXPECT_TRUE(at::equal(batch.data(), data::read_batch(*splits.train, all).data()));
  EXPECT_TRUE(batch.data().isfinite().all().item<bool>());
}

}  // namespace
}  // namespace lockstep::datasets
