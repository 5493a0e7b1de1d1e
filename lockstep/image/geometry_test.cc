#include "lockstep/image/geometry.h"

#include <gtest/gtest.h>

namespace lockstep::image {
namespace {

const Geometry kPhoto = whole({500, 375});

TEST(Geometry, CropsAndResizesOfOneAnotherBecomeOne) {
  const Geometry crop = *cropped(kPhoto, {50, 40, 200, 100});
  EXPECT_EQ(crop.window, (Rect{50, 40, 200, 100}));
  const Geometry resize = *resized(crop, {20, 10});
  EXPECT_EQ(resize.source, (Rect{50, 40, 200, 100}));
  EXPECT_EQ(resize.result(), (Size{20, 10}));
  const Geometry again = *cropped(resize, {5, 5, 10, 5});
  EXPECT_EQ(again.source, resize.source);
  EXPECT_EQ(again.window, (Rect{5, 5, 10, 5}));
  EXPECT_FALSE(resized(again, {3, 3}));
}

TEST(Geometry, CropsLookThroughFlips) {
  const Geometry flipped = flipped_x(flipped_y(kPhoto));
  EXPECT_EQ(cropped(flipped, {0, 0, 100, 75})->window, (Rect{400, 300, 100, 75}));
  EXPECT_TRUE(cropped(flipped, {0, 0, 100, 75})->flip_x);
  EXPECT_EQ(flipped_x(flipped_x(kPhoto)), kPhoto);
}

TEST(Geometry, WhatWasCroppedAwayDoesNotComeBack) {
  EXPECT_EQ(cropped(kPhoto, {-10, -10, 520, 395}, 3)->fill, 3);
  EXPECT_FALSE(cropped(*cropped(kPhoto, {0, 0, 100, 100}), {-10, 0, 100, 100}));
  const Geometry padded = *cropped(kPhoto, {-10, -10, 520, 395}, 3);
  EXPECT_TRUE(cropped(padded, {-5, 0, 600, 395}, 3));
  EXPECT_FALSE(cropped(padded, {-5, 0, 600, 395}, 4));  // two fills
  EXPECT_FALSE(resized(padded, {10, 10}));
}

TEST(Geometry, WhatIsNeededIsTheFiltersReach) {
  EXPECT_EQ(needed(kPhoto, Filter::kBilinear), (Rect{0, 0, 500, 375}));
  const Geometry half = *resized(kPhoto, {250, 375});
  // The pixel 10 has its center at 21: from 19 to 23.
  EXPECT_EQ(needed(*cropped(half, {10, 20, 1, 1}), Filter::kBilinear), (Rect{19, 20, 4, 2}));
  EXPECT_EQ(needed(*cropped(half, {10, 20, 1, 1}), Filter::kNearest), (Rect{21, 20, 1, 1}));
  const Geometry beyond = *cropped(kPhoto, {-600, 0, 100, 375});
  EXPECT_EQ(needed(beyond, Filter::kNearest).width, 1);
}

}  // namespace
}  // namespace lockstep::image
