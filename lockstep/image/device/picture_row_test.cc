#include "lockstep/image/device/picture_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/testing/odd_jpeg.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using testing_support::picture;

// A crop of a turned picture, resized and flipped.
JpegPlan a_plan() {
  const Geometry crop = *cropped(whole({50, 70}), {5, 7, 30, 40});
  return {.stored = {70, 50}, .orientation = 6, .geometry = flipped_x(*resized(crop, {24, 20}))};
}

std::vector<uint8_t> row_of(uint8_t old_bytes, Size result = {24, 20}) {
  return std::vector<uint8_t>(static_cast<size_t>(row_bytes(result)), old_bytes);
}

std::string kind_of(const std::vector<uint8_t>& file) {
  Decoder decoder;
  return kept_here(decoder.open(file, "picture"));
}

TEST(PictureRow, HasTheFileAndAllThatWasPlanned) {
  const auto file = encode_jpeg(picture({70, 50}));
  const JpegPlan plan = a_plan();
  auto row = row_of(0);
  ASSERT_EQ(store_jpeg(plan, file, "cats/1.jpg", row), "");
  const PictureRow read = read_row(row);
  EXPECT_EQ(read.name, "cats/1.jpg");
  EXPECT_EQ(read.why, "");
  EXPECT_TRUE(std::equal(read.file.begin(), read.file.end(), file.begin(), file.end()));
  EXPECT_EQ(read.stored, plan.stored);
  EXPECT_EQ(read.orientation, 6);
  EXPECT_EQ(read.geometry, plan.geometry);
  EXPECT_EQ(read.across.count, 24);
  EXPECT_EQ(read.down.count, 20);
  EXPECT_EQ(read.first_used, 0);
  EXPECT_EQ(read.used, 40) << "rows of the crop";
}

TEST(PictureRow, IsWrittenWhole) {
  const auto file = encode_jpeg(picture({70, 50}));
  auto row = row_of(0), other = row_of(0xff);
  ASSERT_EQ(store_jpeg(a_plan(), file, "1.jpg", row), "");
  ASSERT_EQ(store_jpeg(a_plan(), file, "1.jpg", other), "");
  EXPECT_EQ(row, other);
  for (auto* each : {&row, &other}) {
    const auto pixels = store_pixels("PNG", "1.png", 3 * 24 * 20, *each);
    std::iota(pixels.begin(), pixels.end(), uint8_t{0});
  }
  EXPECT_EQ(row, other);
  const PictureRow read = read_row(row);
  EXPECT_EQ(read.why, "PNG");
  EXPECT_EQ(read.name, "1.png");
  EXPECT_EQ(read.file.size(), 3u * 24 * 20);
  EXPECT_EQ(read.file[7], 7);
}

// Its pixels always have a place.
TEST(PictureRow, AFileThatHasNoPlaceIsLeftToTheHost) {
  const std::vector<uint8_t> long_file(kRowBytes, 1);
  auto row = row_of(3);
  EXPECT_EQ(store_jpeg(a_plan(), long_file, "1.jpg", row), "large JPEG");
  EXPECT_EQ(row, row_of(3)) << "it is as it was";
  JpegPlan large = a_plan();
  large.stored = {10'000, 10'000};
  EXPECT_EQ(store_jpeg(large, std::vector<uint8_t>(100), "1.jpg", row), "large JPEG") << "300 MB of pixels";
  const Size size{1000, 900};
  auto larger = row_of(0, size);
  EXPECT_EQ(store_pixels("PNG", std::string(5000, 'n'), 3 * 1000 * 900, larger).size(), 3u * 1000 * 900);
  EXPECT_THROW(store_pixels("PNG", "n", 3 * 1000 * 900, row), BugError);
}

TEST(PictureRow, OtherBytesAreNone) {
  EXPECT_THROW(read_row(row_of(0)), BugError);
  EXPECT_THROW(read_row(row_of(0xff)), BugError);
  EXPECT_THROW(read_row({}), BugError);
}

TEST(PictureRow, NamesWhatIsKeptOnTheHost) {
  EXPECT_EQ(kind_of(encode_jpeg(picture({40, 30}))), "");
  EXPECT_EQ(kind_of(encode_jpeg(picture({40, 30}, 1))), "") << "grey";
  for (const Subsampling usual :
       {Subsampling::k444, Subsampling::k422, Subsampling::k440, Subsampling::k411, Subsampling::k410}) {
    EXPECT_EQ(kind_of(encode_jpeg(picture({40, 30}), {.subsampling = usual})), "");
  }
  EXPECT_EQ(kind_of(encode_jpeg(picture({40, 30}), {.progressive = true})), "");
  EXPECT_EQ(kind_of(encode_png(picture({40, 30}))), "PNG");
  EXPECT_EQ(kind_of(encode_jpeg(picture({40, 30}), {.cmyk = true})), "CMYK JPEG");
  const auto odd = [](const testing_support::OddJpeg& how) {
    return kind_of(testing_support::encode_odd_jpeg(picture({40, 30}), how));
  };
  EXPECT_EQ(odd({.name = "arithmetic", .arithmetic = true}), "arithmetic JPEG");
  EXPECT_EQ(odd({.name = "RGB", .colours = JCS_RGB}), "RGB JPEG");
  EXPECT_EQ(odd({.name = "sampling", .factors = {{{2, 2}, {2, 1}, {1, 2}}}}), "JPEG of unusual sampling");
}

}  // namespace
}  // namespace lockstep::image
