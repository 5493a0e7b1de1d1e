#include "lockstep/datasets/options/survey_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::datasets {
namespace {

using testing::HasSubstr;
using testing_support::refusal;

TEST(SurveyOptions, AreRead) {
  SurveyOptions options;
  config::OptionSet rows;
  options.declare(rows);
  const std::vector<config::GivenOption> given = {{"size", "64"}, {"augment", "strong"}, {"quick", "true"}};
  rows.apply(given);
  EXPECT_EQ(options.size, 64);
  EXPECT_EQ(options.images.augment, Augment::kStrong);
  EXPECT_TRUE(options.quick);
  options.check();
}

TEST(SurveyOptions, ThatContradictEachOtherAreRefused) {
  const auto refused = [](const SurveyOptions& options) { return refusal([&] { options.check(); }); };
  EXPECT_THAT(refused({.quick = true, .sheet = "a.png"}), HasSubstr("--sheet draws what is decoded"));
  EXPECT_THAT(refused({.quick = true, .verify = true}), HasSubstr("leave --quick out"));
  EXPECT_THAT(refused({.verify = true, .sheet = "a.png"}), HasSubstr("leave --sheet out"));
}

}  // namespace
}  // namespace lockstep::datasets
