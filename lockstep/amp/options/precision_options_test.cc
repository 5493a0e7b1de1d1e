#include "lockstep/amp/options/precision_options.h"

#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::amp {
namespace {

using testing_support::refusal;

// The options that the words make, "name=value".
PrecisionOptions options_of(const std::vector<config::GivenOption>& given) {
  PrecisionOptions options;
  config::OptionSet rows;
  options.declare(rows);
  rows.apply(given);
  return options;
}

TEST(PrecisionOptions, AreRead) {
  EXPECT_EQ(options_of({{"amp", ""}}).amp, AmpLevel::kAuto);
  EXPECT_EQ(options_of({{"amp", "O2"}}).amp, AmpLevel::kO2);
  EXPECT_EQ(options_of({{"loss-scale", "8"}}).loss_scale, 8);
  EXPECT_EQ(options_of({{"loss-scale", "dynamic"}}).loss_scale, 0);
  EXPECT_EQ(options_of({{"keep-batchnorm-fp32", ""}}).keep_batchnorm_fp32, true);
  EXPECT_EQ(options_of({{"keep-batchnorm-fp32", "off"}}).keep_batchnorm_fp32, false);
  EXPECT_EQ(refusal([] { options_of({{"amp", "01"}}); }), "--amp 01: did you mean O1, with the letter O?");
}

TEST(PrecisionOptions, OptLevelsAreReadInSmallLettersToo) { EXPECT_EQ(options_of({{"amp", "o1"}}).amp, AmpLevel::kO1); }

TEST(PrecisionOptions, AHalfTypeNeedsMixedPrecision) {
  const auto check = [](const std::vector<config::GivenOption>& given) {
    PrecisionOptions options;
    config::OptionSet rows;
    options.declare(rows);
    rows.apply_as_given(given);
    options.check_given(rows);
  };
  EXPECT_EQ(refusal([&] {
              check({{"dtype", "fp16"}});
            }),
            "--dtype fp16 goes with --amp; add --amp, or leave it out for fp32");
  check({{"dtype", "fp16"}, {"amp", "O1"}});
  check({{"dtype", "bf16"}, {"amp", "O0"}});  // as a run's own file says it
  check({});
}

TEST(PrecisionOptions, GoTogether) {
  options_of({{"amp", "O3"}, {"keep-batchnorm-fp32", "on"}, {"loss-scale", "8"}}).check(false);
  options_of({{"amp", "auto"}, {"keep-batchnorm-fp32", "on"}}).check(true);
  EXPECT_THROW(options_of({{"amp", "auto"}, {"keep-batchnorm-fp32", "on"}}).check(false), ConfigError);
  EXPECT_THROW(options_of({{"amp", "O1"}, {"keep-batchnorm-fp32", "off"}}).check(false), ConfigError);
  EXPECT_THROW(options_of({{"loss-scale", "8"}}).check(false), ConfigError);
}

}  // namespace
}  // namespace lockstep::amp
