#include "lockstep/datasets/options/pack_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::datasets {
namespace {

using testing::HasSubstr;
using testing_support::refusal;

std::string refused(const PackOptions& options) {
  return refusal([&] { options.check(); });
}

TEST(PackOptions, AreReadAndRecodeOnlyWhereTheyMust) {
  PackOptions options;
  config::OptionSet rows;
  options.declare(rows);
  EXPECT_FALSE(options.recodes());
  const std::vector<config::GivenOption> given = {{"codec", "jpeg"}, {"quality", "80"}, {"shuffle", "off"}};
  rows.apply(given);
  EXPECT_TRUE(options.recodes());
  EXPECT_EQ(options.codec, PackCodec::kJpeg);
  EXPECT_EQ(options.quality, 80);
  EXPECT_FALSE(options.shuffle);
  options.check();
}

TEST(PackOptions, WhatHasNoEffectIsRefused) {
  EXPECT_THAT(refused({.quality = 80}), HasSubstr("--quality: all images are kept"));
  EXPECT_THAT(refused({.codec = PackCodec::kRaw, .quality = 80}), HasSubstr("--codec raw has none"));
  EXPECT_THAT(refused({.exif = Exif::kOff}), HasSubstr("--exif: all images are kept"));
  EXPECT_EQ(refused({.size = 64, .quality = 80, .exif = Exif::kOff}), "");
}

}  // namespace
}  // namespace lockstep::datasets
