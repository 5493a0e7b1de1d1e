#include "lockstep/image/affine.h"

#include <gtest/gtest.h>

#include "lockstep/base/draw.h"
#include "lockstep/base/error.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

Sample applied(const AffineOptions& options, uint64_t number = 0) {
  Sample sample{picture({40, 30}), picture({40, 30}, 1)};
  Scratch scratch;
  random_affine(options)->apply(sample, Draw{1, 0, number}.stream(64), scratch);
  return sample;
}

TEST(RandomAffine, NothingIsTheIdentity) {
  const Sample sample = applied({});
  EXPECT_EQ(difference(sample.image, picture({40, 30})), 0);
  EXPECT_EQ(difference(sample.mask, picture({40, 30}, 1)), 0);
}

// Whole pixels move by translations: image and mask of equal values stay equal.
TEST(RandomAffine, AMaskFollowsItsImage) {
  Scratch scratch;
  int moved = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    Sample sample{picture({40, 30}, 1), picture({40, 30}, 1)};
    random_affine({.translate_x = 0.3, .translate_y = 0.2})->apply(sample, Draw{1, 0, i}.stream(64), scratch);
    ASSERT_EQ(difference(sample.image, sample.mask), 0);
    moved += difference(sample.image, picture({40, 30}, 1)) != 0;
  }
  EXPECT_GT(moved, 40);
}

TEST(RandomAffine, HasTheRecordedBits) {
  uint64_t hash = kFnvSeed;
  for (uint64_t i = 0; i < 20; ++i) {
    const Sample sample = applied(
        {.degrees = 30, .translate_x = 0.1, .translate_y = 0.1, .scale_low = 0.8, .scale_high = 1.2, .shear = 10}, i);
    hash = hash_of(sample.mask, hash_of(sample.image, hash));
  }
  EXPECT_EQ(hash, 8214172417540589250u);
}

TEST(RandomAffine, OptionsAreChecked) {
  EXPECT_THROW(random_affine({.degrees = -1}), ConfigError);
  EXPECT_THROW(random_affine({.translate_x = 2}), ConfigError);
  EXPECT_THROW(random_affine({.scale_low = 0, .scale_high = 1}), ConfigError);
  EXPECT_THROW(random_affine({.shear = 89.5}), ConfigError);
  EXPECT_NO_THROW(random_affine({.shear = 89}));
  EXPECT_EQ(random_affine({.degrees = 15, .scale_low = 0.9})->text(), "RandomAffine 15°, scale 0.9 to 1");
  EXPECT_EQ(random_affine({.degrees = 15, .fill = 7})->text(), "RandomAffine 15°, fill 7");
}

}  // namespace
}  // namespace lockstep::image
