#include "lockstep/image/warp.h"

#include <gtest/gtest.h>

#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

Pixels warped(const Pixels& in, const AffineMap& map, Filter filter = Filter::kBilinear, uint8_t fill = 0) {
  Pixels out;
  warp(in, map, filter, fill, out);
  return out;
}

TEST(Warp, NothingIsTheImage) {
  for (const int channels : {1, 3}) {
    const Pixels in = picture({31, 22}, channels);
    EXPECT_EQ(difference(warped(in, {}), in), 0);
    EXPECT_EQ(difference(warped(in, affine_map(in.size(), {})), in), 0);
    EXPECT_EQ(difference(warped(in, affine_map(in.size(), {}), Filter::kNearest), in), 0);
  }
}

TEST(Warp, QuarterTurnsMovePixels) {
  const Pixels in = picture({30, 30});
  for (const Filter filter : {Filter::kBilinear, Filter::kNearest}) {
    const Pixels right = warped(in, affine_map(in.size(), {.degrees = 90}), filter);
    const Pixels half = warped(in, affine_map(in.size(), {.degrees = 180}), filter);
    int wrong = 0;
    for (int y = 1; y < 29; ++y) {
      for (int x = 1; x < 29; ++x) {
        wrong += right.at(x, y)[0] != in.at(y, 29 - x)[0];  // clockwise, as torchvision's affine()
        wrong += half.at(x, y)[0] != in.at(29 - x, 29 - y)[0];
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Warp, MovesAndFills) {
  const Pixels in = picture({30, 20});
  const Pixels out = warped(in, affine_map(in.size(), {.translate_x = 4, .translate_y = -3}), Filter::kBilinear, 9);
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 30; ++x) {
      ASSERT_EQ(out.at(x, y)[1], x < 4 || y + 3 >= 20 ? 9 : in.at(x - 4, y + 3)[1]) << x << ", " << y;
    }
  }
}

TEST(Warp, HalfAPixelIsTheMean) {
  const Pixels in = picture({30, 20}, 1);
  const Pixels out = warped(in, {.x_0 = 0.5});
  for (int x = 0; x < 29; ++x) EXPECT_EQ(out.at(x, 7)[0], (in.at(x, 7)[0] + in.at(x + 1, 7)[0] + 1) / 2);
}

TEST(Warp, EnlargesAboutTheCenter) {
  const Pixels in = picture({31, 31}, 1);
  const Pixels out = warped(in, affine_map(in.size(), {.scale = 3}));
  EXPECT_EQ(out.at(15, 15)[0], in.at(15, 15)[0]);
  EXPECT_EQ(out.at(18, 12)[0], in.at(16, 14)[0]);
}

// Torchvision's _get_inverse_affine_matrix(center=(15, 10), angle=30, translate=(2, 3), scale=1.5, shear=(10, 0)).
TEST(Warp, MapsAreTorchvisions) {
  const AffineMap map =
      affine_map({30, 20}, {.degrees = 30, .translate_x = 2, .translate_y = 3, .scale = 1.5, .shear = 10});
  EXPECT_NEAR(map.x_x, 0.51857461, 1e-7);
  EXPECT_NEAR(map.x_y, 0.43513576, 1e-7);
  EXPECT_NEAR(map.x_0, 0.52746673, 1e-7);
  EXPECT_NEAR(map.y_x, -0.33333333, 1e-6);
  EXPECT_NEAR(map.y_y, 0.57735027, 1e-6);
  EXPECT_NEAR(map.y_0, 8.16111317, 1e-7);
}

TEST(Warp, HasTheRecordedBits) {
  const Pixels in = picture({64, 48});
  uint64_t hash = kFnvSeed;
  for (int degrees = -40; degrees < 40; degrees += 7) {
    const AffineMap map = affine_map(in.size(), {.degrees = degrees + 0.5, .scale = 1.1, .shear = 5});
    hash = hash_of(warped(in, map), hash_of(warped(in, map, Filter::kNearest), hash));
  }
  EXPECT_EQ(hash, 17976302231967115473u);
}

}  // namespace
}  // namespace lockstep::image
