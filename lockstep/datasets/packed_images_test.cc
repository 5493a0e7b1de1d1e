#include "lockstep/datasets/packed_images.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/open_images.h"
#include "lockstep/datasets/testing/packed_files.h"
#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_packed;

std::string text(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

TEST(PackedImages, AreThoseOfAllShards) {
  const TempDir dir;
  write_packed(dir.path(), {{testing::jpeg({40, 30}, 0), testing::jpeg({40, 30}, 1)}, {}, {testing::png({20, 30}, 2)}});
  const auto images = packed_images(dir.path());
  ASSERT_EQ(images->size(), 3);
  EXPECT_THAT(images->class_names(), ElementsAre("cats", "dogs"));
  std::vector<uint8_t> memory;
  EXPECT_EQ(text(images->read(2, memory).bytes), testing::png({20, 30}, 2));
  EXPECT_EQ(text(images->read(0, memory).bytes), testing::jpeg({40, 30}, 0));
  EXPECT_EQ(text(images->read(1, memory).bytes), testing::jpeg({40, 30}, 1));
  EXPECT_EQ(images->class_of(0), 0);
  EXPECT_EQ(images->class_of(1), 1);
  EXPECT_EQ(images->name_of(2), dir / "shard-2.lks: record 0 (2-0.img)");
  EXPECT_THAT(images->text(), HasSubstr("3 packed images of 2 classes in " + dir.path() + " (as it is)"));
  images->will_need(std::vector<int64_t>{2, 0, 1});
}

TEST(PackedImages, AreOpenedAsImages) {
  const TempDir dir;
  write_packed(dir.path(), {{testing::jpeg({40, 30}, 0), testing::jpeg({40, 30}, 1)}});
  const data::Splits one = open_images({.path = dir.path(), .size = 16});
  EXPECT_EQ(one.train->size(), 2);
  EXPECT_EQ(one.test, nullptr);
  const TempDir both;
  for (const char* part : {"train", "val"}) {
    std::filesystem::create_directory(both / part);
    write_packed(both / part, {{testing::jpeg({40, 30}, 0), testing::jpeg({40, 30}, 1)}});
  }
  const data::Splits parts = open_images({.path = both.path(), .size = 16});
  ASSERT_NE(parts.test, nullptr);
  const auto read = [](const data::Dataset& set) { return data::read_batch(set, std::vector<int64_t>{0, 1}).data(); };
  EXPECT_TRUE(at::equal(read(*parts.test), read(*parts.train->for_evaluation())));
  EXPECT_TRUE(at::equal(read(*parts.test), read(*one.train->for_evaluation())));
}

// The same files in class folders give the same tensors.
TEST(PackedImages, GiveTheFoldersTensors) {
  const TempDir folders, packed;
  const std::string first = testing::jpeg({40, 30}, 0), second = testing::jpeg({50, 30}, 1);
  testing::write_deep(folders, "cats/1.jpg", first);
  testing::write_deep(folders, "dogs/1.jpg", second);
  write_packed(packed.path(), {{first, second}});
  const auto read = [](const TempDir& dir) {
    return data::read_batch(*open_images({.path = dir.path(), .size = 24}).train, std::vector<int64_t>{0, 1}, 3, 5);
  };
  EXPECT_TRUE(at::equal(read(folders).data(), read(packed).data()));
  EXPECT_TRUE(at::equal(read(folders).target(), read(packed).target()));
}

TEST(PackedImages, MayBeRaw) {
  const TempDir dir;
  std::string pixels;
  for (int i = 0; i < 4 * 3 * 3; ++i) pixels += static_cast<char>(i);
  write_packed(dir.path(), {{pixels, pixels.substr(0, 12)}}, Codec::kRaw, {4, 3});
  const auto images = packed_images(dir.path());
  std::vector<uint8_t> memory;
  EXPECT_EQ(images->read(0, memory).raw->channels, 3);
  EXPECT_EQ(images->read(1, memory).raw->channels, 1);
  EXPECT_EQ(images->read(1, memory).raw->size, (image::Size{4, 3}));
}

TEST(PackedImages, RefuseWhatDoesNotBelongTogether) {
  const TempDir dir, other;
  write_packed(dir.path(), {{testing::jpeg()}, {testing::png()}});
  write_packed(other.path(), {{testing::png(), testing::png()}});
  EXPECT_THAT(data_error([&] { packed_images(dir.path(), {"cats", "eels"}); }), HasSubstr("not the 2 of the training"));
  std::filesystem::copy_file(other / "shard-0.lks", dir / "shard-1.lks",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(data_error([&] { packed_images(dir.path()); }),
              AllOf(HasSubstr("shard-1.lks: "), HasSubstr("manifest.json says")));
  std::filesystem::remove(dir / "shard-1.lks");
  EXPECT_THAT(data_error([&] { packed_images(dir.path()); }), HasSubstr("shard-1.lks: can't be read"));
  const TempDir empty;
  write_packed(empty.path(), {});
  EXPECT_THAT(data_error([&] { packed_images(empty.path()); }), HasSubstr("without images"));
}

}  // namespace
}  // namespace lockstep::datasets
