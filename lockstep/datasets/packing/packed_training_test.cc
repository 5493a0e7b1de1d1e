// What training reads of packed data, beside what it reads of the data that was packed.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/open_images.h"
#include "lockstep/datasets/open_pairs.h"
#include "lockstep/datasets/packed/testing/record_io_file.h"
#include "lockstep/datasets/packing/testing/pack_data.h"
#include "lockstep/datasets/stored_data.h"
#include "lockstep/datasets/testing/cifar_files.h"

namespace lockstep::datasets {
namespace {

using testing::data_error;
using ::testing::HasSubstr;
using testing::TempDir;

constexpr uint32_t kEpoch = 3;
constexpr uint64_t kSeed = 5;

data::Batch all_of(const data::Dataset& set) {
  std::vector<int64_t> all(static_cast<size_t>(set.size()));
  std::iota(all.begin(), all.end(), 0);
  return data::read_batch(set, all, kEpoch, kSeed);
}

void expect_equal(const data::Dataset& a, const data::Dataset& b) {
  ASSERT_EQ(a.size(), b.size());
  const data::Batch of_a = all_of(a), of_b = all_of(b);
  EXPECT_TRUE(at::equal(of_a.data(), of_b.data()));
  EXPECT_TRUE(at::equal(of_a.target(), of_b.target()));
}

// Packs the folder "data" into "packed", in its order and in another one.
void pack_both(const TempDir& dir) {
  pack({.data = dir / "data", .out = dir / "packed", .shuffle = false});
  pack({.data = dir / "data", .out = dir / "shuffled"});
}

// Augmented by keyed random numbers, and as an evaluation reads them.
void expect_equal_splits(const data::Splits& a, const data::Splits& b) {
  expect_equal(*a.train, *b.train);
  expect_equal(*a.train->for_evaluation(), *b.train->for_evaluation());
  ASSERT_EQ(a.test == nullptr, b.test == nullptr);
  if (a.test != nullptr) expect_equal(*a.test, *b.test);
}

// Every sample of the shuffled data, under one draw, has the bits of the sample that it was.
void expect_equal_samples(const data::Dataset& folder, const data::Dataset& shuffled, const TempDir& dir) {
  const auto names = open_stored(dir / "shuffled"), files = open_stored(dir / "data");
  std::map<std::string, int64_t> number;
  for (int64_t i = 0; i < folder.size(); ++i) number[files.train().short_name_of(i)] = i;
  const auto read = [](const data::Dataset& set, int64_t index) {
    data::Batch batch = data::read_batch(set, std::vector<int64_t>{0, index});  // memory of the right form
    const std::vector<at::Tensor> rows = {batch.data()[1], batch.target()[1]};
    data::ReadStats stats;
    set.read(index, {.seed = kSeed, .epoch = kEpoch, .number = 4}, rows, stats);
    return batch;
  };
  for (int64_t i = 0; i < shuffled.size(); ++i) {
    const data::Batch a = read(shuffled, i), b = read(folder, number.at(names.train().short_name_of(i)));
    EXPECT_TRUE(at::equal(a.data()[1], b.data()[1])) << names.train().short_name_of(i);
    EXPECT_TRUE(at::equal(a.target()[1], b.target()[1])) << names.train().short_name_of(i);
  }
}

TEST(PackedTraining, ReadsClassFoldersWithTheSameBits) {
  const TempDir dir;
  testing::write_classes(dir, "data/train/", {"cats", "dogs", "eels"}, 4);
  testing::write_classes(dir, "data/val/", {"dogs"}, 2);
  testing::write_deep(
      dir, "data/train/cats/turned.jpg",
      testing::text_of(image::encode_jpeg(image::testing_support::picture({50, 40}), {.orientation = 6})));
  testing::write_deep(dir, "data/train/dogs/grey.png", testing::png({40, 50}, 8, 1));
  pack_both(dir);
  const auto open = [&](const char* name) { return open_images({.path = dir / name, .size = 24}); };
  const data::Splits folder = open("data");
  expect_equal_splits(folder, open("packed"));
  expect_equal_samples(*folder.train, *open("shuffled").train, dir);
  EXPECT_EQ(open("shuffled").train->classes(), 3);
  EXPECT_EQ(open("shuffled").test->class_of(1), 1);
}

TEST(PackedTraining, ReadsImagesWithMasksWithTheSameBits) {
  const TempDir dir;
  testing::write_pairs(dir, "data/train/", 5);
  testing::write_pairs(dir, "data/val/", 2);
  pack_both(dir);
  const auto open = [&](const char* name) { return open_pairs({.path = dir / name, .size = 32, .threads = 2}); };
  const data::Splits folder = open("data"), packed = open("packed"), shuffled = open("shuffled");
  expect_equal_splits(folder, packed);
  expect_equal_samples(*folder.train, *shuffled.train, dir);
  EXPECT_EQ(shuffled.train->classes(), 3);
  EXPECT_EQ(shuffled.train->sample_shape(), folder.train->sample_shape()) << "the first image's proportions";
  EXPECT_THAT(packed.train->description(), HasSubstr("(masks: 0 -> class 0, 7 -> class 1, 200 -> class 2)"));
}

TEST(PackedTraining, ReadsCifarAsSmallImages) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "data");
  for (int i = 0; i < 5; ++i) dir.write(cat("data/data_batch_", i + 1, ".bin"), testing::cifar_file(4 * i, 4, 1));
  dir.write("data/test_batch.bin", testing::cifar_file(20, 4, 1));
  pack_both(dir);
  const auto open = [&](const char* name) { return open_images({.path = dir / name, .size = 32}); };
  expect_equal_splits(open("data"), open("packed"));
  expect_equal_samples(*open("data").train, *open("shuffled").train, dir);
  EXPECT_EQ(packed_kind(dir / "packed"), Packed::kCifar10);
}

TEST(PackedTraining, ReadsRecordIoWithTheSameBits) {
  const TempDir dir;
  std::string records;
  for (uint64_t i = 0; i < 5; ++i) {
    records += testing::record_io(testing::image_record(static_cast<float>(i % 2), testing::jpeg({40, 30}, i)));
  }
  dir.write("data.rec", records);
  pack({.data = dir / "data.rec", .out = dir / "packed", .shuffle = false});
  const auto open = [&](const char* name) { return open_images({.path = dir / name, .size = 24}); };
  expect_equal_splits(open("data.rec"), open("packed"));
}

TEST(PackedTraining, PacksPackedDataAnew) {
  const TempDir dir;
  testing::write_classes(dir, "data/", {"cats", "dogs"}, 3);
  pack_both(dir);
  pack({.data = dir / "packed", .out = dir / "again", .shuffle = false});
  const auto open = [&](const char* name) { return open_images({.path = dir / name, .size = 24}); };
  expect_equal_splits(open("data"), open("again"));
}

TEST(PackedTraining, IsOfWhatTheRecipeTakes) {
  const TempDir dir;
  testing::write_classes(dir, "classes/", {"cats", "dogs"}, 2);
  testing::write_pairs(dir, "pairs/", 2);
  pack({.data = dir / "classes", .out = dir / "packed_classes"});
  pack({.data = dir / "pairs", .out = dir / "packed_pairs"});
  EXPECT_THAT(data_error([&] { open_images({.path = dir / "packed_pairs"}); }),
              HasSubstr("`lockstep train unet` takes"));
  EXPECT_THAT(data_error([&] { open_pairs({.path = dir / "packed_classes"}); }),
              HasSubstr("`lockstep train imagenet` takes"));
}

}  // namespace
}  // namespace lockstep::datasets
