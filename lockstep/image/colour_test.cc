#include "lockstep/image/colour.h"

#include <gtest/gtest.h>

#include "lockstep/base/draw.h"
#include "lockstep/base/error.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

Sample applied(const ColourJitterOptions& options, uint64_t number) {
  Sample sample{picture({40, 30}), picture({40, 30}, 1)};
  Scratch scratch;
  colour_jitter(options)->apply(sample, Draw{1, 0, number}.stream(80), scratch);
  return sample;
}

TEST(ColourJitter, NothingIsTheIdentity) { EXPECT_EQ(difference(applied({}, 0).image, picture({40, 30})), 0); }

TEST(ColourJitter, ChangesTheImageAlone) {
  int changed = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    const Sample sample = applied({0.4, 0.4, 0.4, 0.1}, i);
    changed += difference(sample.image, picture({40, 30})) != 0;
    EXPECT_EQ(difference(sample.mask, picture({40, 30}, 1)), 0);
  }
  EXPECT_EQ(changed, 20);
}

TEST(ColourJitter, BrightnessIsWithinItsRange) {
  double least = 10, most = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    Sample sample{flat({2, 2}, 3, 100), {}};
    Scratch scratch;
    colour_jitter({.brightness = 0.5})->apply(sample, Draw{1, 0, i}.stream(80), scratch);
    least = std::min(least, sample.image.at(0, 0)[0] / 100.0);
    most = std::max(most, sample.image.at(0, 0)[0] / 100.0);
  }
  EXPECT_NEAR(least, 0.5, 0.03);
  EXPECT_NEAR(most, 1.5, 0.03);
}

TEST(ColourJitter, HasTheRecordedBits) {
  uint64_t hash = kFnvSeed;
  for (uint64_t i = 0; i < 30; ++i) hash = hash_of(applied({0.4, 0.4, 0.4, 0.1}, i).image, hash);
  EXPECT_EQ(hash, 1276224770223334753u);
}

TEST(ColourJitter, OptionsAreChecked) {
  EXPECT_THROW(colour_jitter({.brightness = -1}), ConfigError);
  EXPECT_THROW(colour_jitter({.hue = 0.6}), ConfigError);
  EXPECT_EQ(colour_jitter({0.4, 0.4, 0.2, 0.1})->text(), "ColorJitter 0.4 0.4 0.2 0.1");
}

}  // namespace
}  // namespace lockstep::image
