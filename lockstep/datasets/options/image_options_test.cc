#include "lockstep/datasets/options/image_options.h"

#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::datasets {
namespace {

TEST(ImageOptions, AreReadAndRecorded) {
  ImageOptions images;
  config::OptionSet rows;
  images.declare(rows);
  EXPECT_EQ(rows.record().size(), 3u) << "a run's bits depend on each";
  EXPECT_FALSE(images.augment);
  rows.apply(std::vector<config::GivenOption>{{"augment", "strong"}, {"exif", "off"}, {"fast-decode", "true"}});
  EXPECT_EQ(images.augment, Augment::kStrong);
  EXPECT_FALSE(images.turns());
  EXPECT_TRUE(ImageOptions().turns());
  EXPECT_TRUE(images.fast_decode);
}

TEST(ImageOptions, AreRefusedWithTheWordsThatThereAre) {
  ImageOptions images;
  config::OptionSet rows;
  images.declare(rows);
  const auto refusal = testing_support::refusal([&] {
    rows.apply(std::vector<config::GivenOption>{{"augment", "heavy"}});
  });
  EXPECT_NE(refusal.find("none, flip, standard or strong"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace lockstep::datasets
