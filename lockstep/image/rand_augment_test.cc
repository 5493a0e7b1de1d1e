#include "lockstep/image/rand_augment.h"

#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/draw.h"
#include "lockstep/base/error.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

Sample applied(int operations, int magnitude, uint64_t number) {
  Sample sample{picture({40, 30}), picture({40, 30}, 1)};
  Scratch scratch;
  rand_augment(operations, magnitude)->apply(sample, Draw{1, 0, number}.stream(112), scratch);
  return sample;
}

TEST(RandAugment, ChoosesFromAllOperations) {
  std::set<uint64_t> images;
  for (uint64_t i = 0; i < 400; ++i) images.insert(hash_of(applied(1, 9, i).image));
  EXPECT_EQ(images.size(), 14u + 9);  // nine of them go either way
}

TEST(RandAugment, GeometryAloneMovesMasks) {
  std::set<uint64_t> masks;
  for (uint64_t i = 0; i < 400; ++i) masks.insert(hash_of(applied(1, 9, i).mask));
  EXPECT_EQ(masks.size(), 1u + 10);  // five, either way
}

TEST(RandAugment, NoOperationsLeaveTheImage) { EXPECT_EQ(difference(applied(0, 9, 1).image, picture({40, 30})), 0); }

TEST(RandAugment, TheStrengthIsTheMagnitudes) {
  int64_t weak = 0, strong = 0;
  const Pixels original = picture({40, 30});
  for (uint64_t i = 0; i < 100; ++i) {
    weak += difference(applied(2, 3, i).image, original);
    strong += difference(applied(2, 25, i).image, original);
  }
  EXPECT_LT(weak, strong);
}

TEST(RandAugment, HasTheRecordedBits) {
  uint64_t hash = kFnvSeed;
  for (uint64_t i = 0; i < 60; ++i) hash = hash_of(applied(2, 9, i).image, hash);
  EXPECT_EQ(hash, 8068724245001571733u);
}

TEST(RandAugment, OptionsAreChecked) {
  EXPECT_THROW(rand_augment(-1), ConfigError);
  EXPECT_THROW(rand_augment(2, 31), ConfigError);
  EXPECT_EQ(rand_augment()->text(), "RandAugment 2 of magnitude 9");
}

}  // namespace
}  // namespace lockstep::image
