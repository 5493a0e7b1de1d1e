#include "lockstep/image/sheet.h"

#include <gtest/gtest.h>

#include "lockstep/image/class_colours.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

constexpr int kCell = Sheet::kCell, kGap = Sheet::kGap, kBetween = Sheet::kBetween;

std::array<int, 3> at(const Sheet& sheet, int x, int y) {
  const uint8_t* const pixel = sheet.pixels().at(x, y);
  return {pixel[0], pixel[1], pixel[2]};
}

TEST(Sheets, HaveRowsOfSamplesAndPicturesSideBySide) {
  Sheet sheet(5, 2, 4);
  EXPECT_EQ(sheet.pixels().size(),
            (Size{4 * (2 * kCell + kGap + kBetween) + kBetween, 2 * (kCell + kBetween) + kBetween}));
  sheet.draw(4, 1, flat({64, 64}, 1, 100), {});
  const int left = kBetween + kCell + kGap, top = kBetween + kCell + kBetween;
  EXPECT_EQ(at(sheet, left, top), (std::array{100, 100, 100}));
  EXPECT_EQ(at(sheet, left + kCell - 1, top + kCell - 1), (std::array{100, 100, 100}));
  EXPECT_EQ(at(sheet, left - 1, top), (std::array{40, 40, 40})) << "the ground";
}

TEST(Sheets, ScaleImagesAndLayClassesOverThem) {
  Sheet sheet(1, 1, 1);
  Pixels classes = flat({100, 50}, 1, 0);
  for (int y = 0; y < 50; ++y) std::fill_n(classes.row(y) + 50, 50, uint8_t{1});
  sheet.draw(0, 0, flat({100, 50}, 3, 100), classes);
  EXPECT_EQ(at(sheet, kBetween + 80, kBetween + 10), (std::array{40, 40, 40})) << "a wide image has ground above it";
  EXPECT_EQ(at(sheet, kBetween + 20, kBetween + 80), (std::array{100, 100, 100}));
  const Colour colour = class_colour(1);
  EXPECT_EQ(at(sheet, kBetween + 120, kBetween + 80)[0], (300 + 2 * colour[0]) / 5);
}

TEST(Sheets, FrameASample) {
  Sheet sheet(2, 1, 2);
  sheet.frame(1, 255, 0, 0);
  const int left = kBetween + kCell + kBetween;
  for (const int x : {left - 4, left + kCell + 3}) EXPECT_EQ(at(sheet, x, kBetween + 9), (std::array{255, 0, 0})) << x;
  EXPECT_EQ(at(sheet, left, kBetween + 9), (std::array{40, 40, 40}));
  EXPECT_EQ(at(sheet, left + 9, kBetween - 4), (std::array{255, 0, 0}));
}

}  // namespace
}  // namespace lockstep::image
