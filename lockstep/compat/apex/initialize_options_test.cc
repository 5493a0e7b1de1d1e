#include "lockstep/compat/apex/initialize_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::apex::amp {
namespace {

using lockstep::amp::OptLevel;
using testing::HasSubstr;
using testing_support::refusal;

TEST(InitializeOptions, WhatIsNotSetIsLeftToTheLevel) {
  const auto resolved = resolve({.opt_level = "O2"});
  EXPECT_EQ(resolved.opt_level, OptLevel::kO2);
  EXPECT_EQ(resolved.dtype, c10::ScalarType::BFloat16);
  EXPECT_FALSE(resolved.cast_model || resolved.cast_ops || resolved.keep_batchnorm_fp32 || resolved.master_weights);
  EXPECT_FALSE(resolved.loss_scale || resolved.cast_model_outputs);
}

TEST(InitializeOptions, KeywordsKeepTheirMeaning) {
  const auto resolved = resolve({.opt_level = "O3",
                                 .cast_model_type = c10::ScalarType::Half,
                                 .patch_torch_functions = false,
                                 .keep_batchnorm_fp32 = true,
                                 .master_weights = true,
                                 .cast_model_outputs = c10::ScalarType::Float,
                                 .loss_scale = 128.0,
                                 .min_loss_scale = 2,
                                 .max_loss_scale = 512,
                                 .num_losses = 3});
  EXPECT_EQ(resolved.dtype, c10::ScalarType::Half);
  EXPECT_EQ(resolved.cast_model, true);
  EXPECT_EQ(resolved.cast_ops, false);
  EXPECT_EQ(resolved.keep_batchnorm_fp32, true);
  EXPECT_EQ(resolved.master_weights, true);
  EXPECT_EQ(resolved.cast_model_outputs, c10::ScalarType::Float);
  EXPECT_EQ(resolved.loss_scale, 128);
  EXPECT_EQ(resolved.min_loss_scale, 2);
  EXPECT_EQ(resolved.max_loss_scale, 512);
  EXPECT_EQ(resolved.num_losses, 3);
}

TEST(InitializeOptions, CastModelTypeMayBeFp32) {
  const auto resolved = resolve({.dtype = c10::ScalarType::Half, .cast_model_type = c10::ScalarType::Float});
  EXPECT_EQ(resolved.cast_model, false);
  EXPECT_EQ(resolved.dtype, c10::ScalarType::Half);
}

TEST(InitializeOptions, ADynamicScaleIsTheLevelsOwn) {
  EXPECT_FALSE(resolve({.loss_scale = "dynamic"}).loss_scale);
  EXPECT_THAT(refusal([] { resolve({.loss_scale = "static"}); }), HasSubstr("expected a number or \"dynamic\""));
}

TEST(InitializeOptions, NotEnabledIsO0) {
  const auto resolved = resolve({.enabled = false, .opt_level = "O2", .loss_scale = 128.0});
  EXPECT_EQ(resolved.opt_level, OptLevel::kO0);
  EXPECT_FALSE(resolved.loss_scale);
}

TEST(InitializeOptions, RefusesTwoTypesAndOtherLevels) {
  EXPECT_THAT(refusal([] { resolve({.dtype = c10::ScalarType::BFloat16, .cast_model_type = c10::ScalarType::Half}); }),
              HasSubstr("cast_model_type Half and dtype BFloat16"));
  EXPECT_THAT(refusal([] { resolve({.opt_level = "02"}); }), HasSubstr("with the letter O"));
}

}  // namespace
}  // namespace lockstep::apex::amp
