#include "lockstep/image/fit.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

Geometry plan(Size image, Size size) { return *fit(size)->plan(whole(image), {1, Purpose::kAugment, 0, 0, 0}); }

TEST(Fit, TakesTheLargestPartOfItsProportions) {
  EXPECT_EQ(plan({200, 100}, {50, 50}).source, (Rect{50, 0, 100, 100}));
  EXPECT_EQ(plan({100, 200}, {50, 50}).source, (Rect{0, 50, 100, 100}));
  EXPECT_EQ(plan({1918, 1280}, {384, 256}).source, (Rect{0, 0, 1918, 1279}));
  EXPECT_EQ(plan({10, 10}, {96, 32}).source, (Rect{0, 3, 10, 3}));
  EXPECT_EQ(plan({1, 1000}, {1000, 1}).source.size(), (Size{1, 1}));
}

TEST(Fit, GivesItsSizeAlways) {
  for (const Size image : {Size{1, 1}, Size{3, 500}, Size{500, 3}, Size{64, 48}}) {
    EXPECT_EQ(plan(image, {64, 48}).result(), (Size{64, 48}));
  }
  EXPECT_EQ(plan({64, 48}, {64, 48}).source, (Rect{0, 0, 64, 48}));
}

TEST(Fit, SaysItsSize) {
  EXPECT_EQ(fit({64, 64})->text(), "Fit 64");
  EXPECT_EQ(fit({64, 48})->text(), "Fit 64 x 48");
  EXPECT_THROW(fit({0, 48}), ConfigError);
}

}  // namespace
}  // namespace lockstep::image
