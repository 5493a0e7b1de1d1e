#include "lockstep/datasets/record_io_images.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/open_images.h"
#include "lockstep/datasets/packed/testing/record_io_file.h"
#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using testing::data_error;
using ::testing::HasSubstr;
using testing::TempDir;

TEST(RecordIoImages, AreOpenedAsImages) {
  const TempDir dir;
  const std::string first = testing::jpeg({40, 30}, 0), second = testing::jpeg({50, 30}, 1);
  const auto bytes =
      testing::record_io(testing::image_record(1, first)) + testing::record_io(testing::image_record(4, second, 1));
  dir.write("train.rec", bytes);
  dir.write("val.rec", testing::record_io(testing::image_record(2, first)));
  const data::Splits splits = open_images({.path = dir.path(), .size = 24});
  EXPECT_EQ(splits.train->size(), 2);
  EXPECT_EQ(splits.train->classes(), 5);
  EXPECT_TRUE(splits.train->class_names().empty()) << "they are numbers";
  ASSERT_NE(splits.test, nullptr);
  EXPECT_EQ(splits.test->classes(), 5);
  EXPECT_EQ(splits.test->class_of(0), 2);
  EXPECT_EQ(splits.train->name_of(0), dir / "train.rec: record 0 at byte 0");
  const TempDir folders;
  testing::write_deep(folders, "cats/1.jpg", first);
  testing::write_deep(folders, "dogs/1.jpg", second);
  const auto read = [](const std::string& path) {
    return data::read_batch(*open_images({.path = path, .size = 24}).train, std::vector<int64_t>{0, 1}, 3, 5).data();
  };
  EXPECT_TRUE(at::equal(read(dir.path()), read(folders.path())));
  EXPECT_TRUE(at::equal(read(dir / "train.rec"), read(folders.path())));
  EXPECT_EQ(open_images({.path = dir / "train.rec"}).test, nullptr);
}

TEST(RecordIoImages, OfAnotherPartHaveNoMoreClasses) {
  const TempDir dir;
  dir.write("train.rec", testing::record_io(testing::image_record(1, testing::jpeg())));
  dir.write("val.rec", testing::record_io(testing::image_record(2, testing::jpeg())));
  EXPECT_THAT(data_error([&] { open_images({.path = dir.path()}); }),
              HasSubstr("val.rec: has the class 2, and the training part's go from 0 to 1"));
}

TEST(RecordIoImages, AreScannedOnOneRank) {
  const TempDir dir;
  const std::string path = dir.write("a.rec", testing::record_io(testing::image_record(1, "image")));
  int computed = 0;
  const data::OnOneRank once = [&](const std::function<std::string()>& compute) {
    ++computed;
    return compute();
  };
  const auto here = record_io_images(path), there = record_io_images(path, {.on_one_rank = once});
  EXPECT_EQ(computed, 1);
  EXPECT_EQ(here->fingerprint(), there->fingerprint());
  std::vector<uint8_t> memory;
  const auto bytes = there->read(0, memory).bytes;
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "image");
  there->will_need(std::vector<int64_t>{0});
}

}  // namespace
}  // namespace lockstep::datasets
