#include "lockstep/datasets/survey/contact_sheet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_deep;

ContactSheet sheet_of(const SurveyOptions& options) { return contact_sheet(survey(options).value(), options); }

bool is_like(const uint8_t* pixel, int red, int green, int blue) {
  return std::abs(pixel[0] - red) < 3 && std::abs(pixel[1] - green) < 3 && std::abs(pixel[2] - blue) < 3;
}

// Grey images of one level, half of each masked.
void write_flat_pairs(const TempDir& dir, int count) {
  for (int i = 0; i < count; ++i) {
    write_deep(dir, cat("imgs/", i, ".png"),
               testing::text_of(image::encode_png(image::testing_support::flat({64, 64}, 1, 100))));
    image::Pixels mask = image::testing_support::flat({64, 64}, 1, 0);
    for (int y = 0; y < 64; ++y) std::fill_n(mask.row(y) + 32, 32, uint8_t{255});
    write_deep(dir, cat("masks/", i, ".png"), testing::text_of(image::encode_png(mask)));
  }
}

TEST(ContactSheets, ShowSamplesBeforeAndAfter) {
  const TempDir dir;
  write_flat_pairs(dir, 3);
  const SurveyOptions options{.data = dir.path(), .size = 64, .images = {.augment = Augment::kNone}};
  const ContactSheet sheet = sheet_of(options);
  EXPECT_EQ(sheet.samples.size(), 3u);
  EXPECT_EQ(sheet.pixels.height(), 12 + 160 + 12);
  for (const int left : {12, 12 + 160 + 4}) {  // as it is stored; augmented
    EXPECT_TRUE(is_like(sheet.pixels.at(left + 20, 90), 100, 100, 100)) << left;
    EXPECT_TRUE(is_like(sheet.pixels.at(left + 140, 90), 162, 85, 85)) << left << ": two fifths of the class's red";
  }
  EXPECT_TRUE(is_like(sheet.pixels.at(5, 5), 40, 40, 40));
}

TEST(ContactSheets, ShowSixteenSamplesAtMostAndNameThem) {
  const TempDir dir;
  testing::write_classes(dir, "", {"cats", "dogs"}, 9);
  const SurveyOptions options{.data = dir.path(), .size = 32};
  const ContactSheet sheet = sheet_of(options);
  ASSERT_EQ(sheet.samples.size(), 16u);
  EXPECT_EQ(sheet.pixels.height(), 12 + 4 * (160 + 12));
  EXPECT_THAT(sheet.samples, ::testing::Contains(HasSubstr(".jpg, dogs")));
  EXPECT_EQ(image::testing_support::hash_of(sheet.pixels), image::testing_support::hash_of(sheet_of(options).pixels));
  SurveyOptions other = options;
  other.seed = 2;
  EXPECT_NE(image::testing_support::hash_of(sheet.pixels), image::testing_support::hash_of(sheet_of(other).pixels));
}

TEST(ContactSheets, AreWritten) {
  const TempDir dir;
  const ContactSheet sheet{.pixels = image::testing_support::picture({30, 20}), .samples = {"a", "b", "c", "d", "e"}};
  write_sheet(sheet, dir / "sheet.png");
  std::ifstream file(dir / "sheet.png", std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(image::testing_support::difference(image::testing_support::decoded(bytes), sheet.pixels), 0);
  EXPECT_THROW(write_sheet(sheet, dir / "none/sheet.png"), IoError);
  EXPECT_THROW(write_sheet(sheet, "/dev/full"), IoError);
  EXPECT_THAT(text_of(sheet, "sheet.png"), HasSubstr("\n    a  |  b  |  c  |  d\n    e\n"));
}

}  // namespace
}  // namespace lockstep::datasets
