#include "lockstep/datasets/packed/record_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/datasets/files/testing/files.h"
#include "lockstep/datasets/packed/testing/record_io_file.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::HasSubstr;
using testing::image_record;
using testing::record_io;
using testing::TempDir;

std::vector<std::string> images_of(const RecordIo& file) {
  std::vector<std::string> images;
  std::vector<uint8_t> memory;
  for (const RecordPlace& place : file.scan()) {
    const auto image = file.image(place, memory);
    images.emplace_back(image.begin(), image.end());
  }
  return images;
}

TEST(RecordIo, HasImagesAndClasses) {
  const TempDir dir;
  const RecordIo file(dir.write("a.rec", record_io(image_record(3, "first")) + record_io(image_record(0, "")) +
                                             record_io(image_record(12, "second image", 1))));
  const auto places = file.scan();
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0], (RecordPlace{0, 40, 3}));
  EXPECT_EQ(places[1].class_number, 0);
  EXPECT_EQ(places[2].class_number, 12);
  EXPECT_EQ(images_of(file), (std::vector<std::string>{"first", "", "second image"}));
}

TEST(RecordIo, JoinsRecordsWhoseDataHoldTheMagic) {
  const std::string magic = testing::number(testing::kRecordIoMagic);
  const std::vector<std::string> images = {"abcd" + magic + "efgh", magic + "abc", "abcd" + magic,
                                           magic + magic + "abcd" + magic + "x", "ab" + magic + "cd"};
  std::string bytes;
  for (const std::string& image : images) bytes += record_io(image_record(1, image));
  const TempDir dir;
  EXPECT_EQ(images_of(RecordIo(dir.write("a.rec", bytes))), images);
}

TEST(RecordIo, IsCheckedAgainstItsIndex) {
  const TempDir dir;
  const RecordIo file(dir.write("a.rec", record_io(image_record(1, "x")) + record_io(image_record(1, "y"))));
  for (const char* whole : {"0\t0\n1\t36\n", "0\t0\n1\t36"}) {
    dir.write("a.idx", whole);
    EXPECT_EQ(file.scan().size(), 2u);
  }
  dir.write("a.idx", "0\t0\n1\t36\n2\t72\n");
  EXPECT_THAT(data_error([&] { file.scan(); }), AllOf(HasSubstr("has 2 records"), HasSubstr("a.idx lists 3")));
}

TEST(RecordIo, RefusesLabelsThatAreNoClass) {
  const TempDir dir;
  for (const float label : {0.5f, -1.f, 1e9f, std::numeric_limits<float>::quiet_NaN()}) {
    const RecordIo file(dir.write("a.rec", record_io(image_record(label, "x"))));
    EXPECT_THAT(data_error([&] { file.scan(); }), HasSubstr("is no class")) << label;
  }
  const RecordIo file(dir.write("a.rec", record_io(image_record(1, "x", 5))));
  EXPECT_THAT(data_error([&] { file.scan(); }), HasSubstr("5 labels"));
}

// Cut anywhere but between records, or with any byte of a head changed, it is refused by name or reads as something.
TEST(RecordIo, IsRefusedWhereItIsDamaged) {
  const TempDir dir;
  const std::string first = record_io(image_record(1, "first image")), whole = first + record_io(image_record(2, "y"));
  for (size_t length = 0; length < whole.size(); ++length) {
    const bool lacks_padding_alone = length + 1 == first.size() || length + 3 >= whole.size();
    if (length == first.size() || lacks_padding_alone) continue;
    const RecordIo file(dir.write("a.rec", whole.substr(0, length)));
    EXPECT_THAT(data_error([&] { images_of(file); }), HasSubstr("a.rec: ")) << length;
  }
  for (size_t at = 0; at < 8; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    const RecordIo file(dir.write("a.rec", damaged));
    EXPECT_THAT(data_error([&] { images_of(file); }), HasSubstr("a.rec: ")) << at;
  }
  for (const uint32_t flag : {1, 2, 3, 7}) {
    const RecordIo file(dir.write("a.rec", testing::part(flag, image_record(1, "x"))));
    EXPECT_NE(data_error([&] { file.scan(); }), "") << flag;
  }
}

}  // namespace
}  // namespace lockstep::datasets
