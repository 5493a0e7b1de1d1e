#include "lockstep/compat/apex/initialize_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::apex::amp {
namespace {

using lockstep::amp::OptLevel;
using testing::HasSubstr;
using testing_support::refusal;

// The table of Apex's frontend.py.
TEST(InitializeOptions, DefaultsAreApexs) {
  struct Row {
    const char* level;
    bool cast_model, cast_ops, keep_batchnorm_fp32, master_weights, dynamic;
  };
  for (const auto& row : {Row{"O0", false, false, false, false, false}, Row{"O1", false, true, false, false, true},
                          Row{"O2", true, false, true, true, true}, Row{"O3", true, false, false, false, false}}) {
    const auto resolved = resolve({.opt_level = row.level});
    const auto policy = lockstep::amp::make_policy(resolved);
    EXPECT_EQ(policy.dtype, c10::ScalarType::Half);
    EXPECT_EQ(policy.cast_model, row.cast_model) << row.level;
    EXPECT_EQ(policy.cast_ops, row.cast_ops) << row.level;
    EXPECT_EQ(policy.keep_batchnorm_fp32, row.keep_batchnorm_fp32) << row.level;
    EXPECT_EQ(policy.master_weights, row.master_weights) << row.level;
    const auto scaler = lockstep::amp::scaler_options(resolved);
    EXPECT_EQ(scaler.enabled && scaler.dynamic, row.dynamic) << row.level;
    EXPECT_EQ(lockstep::amp::initial(scaler).scale, row.dynamic ? 65536 : 1) << row.level;
  }
  const auto bf16 = resolve({.opt_level = "O3", .dtype = c10::ScalarType::BFloat16});
  EXPECT_FALSE(lockstep::amp::scaler_options(bf16).enabled);
  EXPECT_FALSE(resolve({.opt_level = "O3", .loss_scale = "dynamic"}).loss_scale);
}

// min_loss_scale is None there.
TEST(InitializeOptions, TheScaleFallsWithoutABound) {
  auto scaler = lockstep::amp::LossScaler(lockstep::amp::scaler_options(resolve({})));
  for (int step = 0; step < 20; ++step) scaler.update(/*found_inf=*/true);
  EXPECT_EQ(scaler.scale(), 1.0 / 16);
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
