#include "lockstep/datasets/digits/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/datasets/digits/testing/mnist_files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using testing::gzip;
using ::testing::HasSubstr;
using testing::idx_header;
using testing::idx_images;
using testing::idx_labels;
using testing::TempDir;

// The error of reading a file with this content as images, or as labels.
std::string images_error(const std::string& content) {
  const TempDir dir;
  const std::string path = dir.write("file", content);
  const std::string line = data_error([&] { read_idx_images(path); });
  EXPECT_THAT(line, HasSubstr(path));
  return line;
}
std::string labels_error(const std::string& content) {
  const TempDir dir;
  return data_error([&] { read_idx_labels(dir.write("file", content)); });
}

TEST(Idx, ReadsPackedAndUnpackedByContent) {
  const TempDir dir;
  for (const std::string& path : {dir.write("a", idx_images(3, 4, 5)), dir.write("b", gzip(idx_images(3, 4, 5))),
                                  dir.write("c.gz", idx_images(3, 4, 5))}) {
    const IdxImages images = read_idx_images(path);
    EXPECT_EQ(images.count, 3);
    EXPECT_EQ(images.rows, 4);
    EXPECT_EQ(images.columns, 5);
    ASSERT_EQ(images.pixels.size(), 60u);
    for (size_t i = 0; i < 60; ++i) EXPECT_EQ(images.pixels[i], (7 * i) % 256);
  }
  EXPECT_EQ(read_idx_labels(dir.write("l", idx_labels(12))),
            (std::vector<uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1}));
}

TEST(Idx, ReadsTwoGzipMembers) {
  const TempDir dir;
  const std::string labels = idx_labels(12);
  EXPECT_EQ(read_idx_labels(dir.write("l", gzip(labels.substr(0, 9)) + gzip(labels.substr(9)))).size(), 12u);
}

TEST(Idx, SaysWhereAFileIsCutShort) {
  const std::string sound = idx_images(3);
  EXPECT_THAT(images_error(sound.substr(0, 1000)), AllOf(HasSubstr("2368 bytes"), HasSubstr("1000 are there")));
  EXPECT_THAT(images_error(sound.substr(0, 2367)), HasSubstr("2367 are there"));
  EXPECT_THAT(images_error(gzip(sound.substr(0, 1000))), AllOf(HasSubstr("2368 bytes"), HasSubstr("1000 are there")));
  EXPECT_THAT(images_error(gzip(sound).substr(0, 200)),
              AllOf(HasSubstr("cut short (200 bytes of it are there, 2368 were to come out"), HasSubstr("again")));
  EXPECT_THAT(images_error(sound.substr(0, 10)), HasSubstr("10 bytes where the header alone has 16"));
  EXPECT_THAT(images_error(gzip(sound.substr(0, 10))), HasSubstr("10 bytes where the header alone has 16"));
  EXPECT_THAT(images_error(""), HasSubstr("0 bytes"));
  EXPECT_THAT(images_error(gzip("")), HasSubstr("0 bytes"));
}

TEST(Idx, RefusesWhatGoesOnAfterTheEnd) {
  EXPECT_THAT(images_error(idx_images(3) + "x"), HasSubstr("byte 2368: data goes on after the 3 images of 28×28"));
  EXPECT_THAT(images_error(gzip(idx_images(3) + "x")), HasSubstr("byte 2368"));
  EXPECT_THAT(images_error(gzip(idx_images(3) + std::string(50 << 20, '\0'))), HasSubstr("byte 2368"));
  EXPECT_THAT(images_error(gzip(idx_images(3)) + gzip("x")), HasSubstr("byte 2368"));
}

TEST(Idx, TellsImagesFromLabels) {
  EXPECT_THAT(images_error(idx_labels(3)), HasSubstr("holds labels where images are expected (magic 2049, not 2051)"));
  EXPECT_THAT(labels_error(idx_images(3)), HasSubstr("holds images where labels are expected"));
  EXPECT_THAT(labels_error(gzip(idx_images(3))), HasSubstr("holds images where labels are expected"));
}

TEST(Idx, RefusesOtherFiles) {
  EXPECT_THAT(images_error("PK\3\4 a zip archive"), HasSubstr("begins with the bytes 50 4b 03 04"));
  EXPECT_THAT(images_error("<html>Not found</html>"), HasSubstr("not an idx file of images"));
  EXPECT_THAT(images_error("\x1f\x8b and then no gzip data at all"), HasSubstr("file"));
  EXPECT_THAT(images_error(gzip("no idx file")), HasSubstr("not an idx file"));
  EXPECT_THAT(images_error(idx_header(0x00000d03, {1, 1, 1})), HasSubstr("00 00 0d 03"));
}

TEST(Idx, TrustsNoHeaderBeyondTheFile) {
  const uint32_t most = 0xffffffff;
  EXPECT_THAT(images_error(idx_header(2051, {most, most, most})), HasSubstr("4294967295 images"));
  // 2^31 · 2^31 · 4 = 2^64: a product that wraps to 0.
  EXPECT_THAT(images_error(idx_header(2051, {1u << 31, 1u << 31, 4})), HasSubstr("header promises"));
  EXPECT_THAT(images_error(gzip(idx_header(2051, {most, most, most}))), HasSubstr("4294967295 images"));
  EXPECT_THAT(images_error(idx_header(2051, {2000000, 28, 28})), HasSubstr("1568000016 bytes, 16 are there"));
  EXPECT_THAT(images_error(gzip(idx_header(2051, {2000000, 28, 28}))), HasSubstr("can't hold"));
  EXPECT_THAT(labels_error(idx_header(2049, {most})), HasSubstr("4294967295 labels"));
  EXPECT_THAT(images_error(idx_header(2051, {most, 0, 28})), HasSubstr("without a pixel"));
}

TEST(Idx, LeavesAnEmptyListToTheCaller) {
  const TempDir dir;
  EXPECT_THAT(images_error(idx_images(0)), HasSubstr("byte 4: holds no images"));
  EXPECT_TRUE(read_idx_labels(dir.write("l", idx_labels(0))).empty());
}

TEST(Idx, RefusesADirectory) {
  const TempDir dir;
  EXPECT_THAT(data_error([&] { read_idx_images(dir.path()); }), HasSubstr("is a directory"));
}

}  // namespace
}  // namespace lockstep::datasets
