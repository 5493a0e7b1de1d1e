#include "lockstep/amp/opt_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep::amp {
namespace {

using testing::HasSubstr;
using testing_support::refusal;

TEST(OptLevel, NamesAreRead) {
  EXPECT_EQ(parse_opt_level("O0"), OptLevel::kO0);
  EXPECT_EQ(parse_opt_level("O3"), OptLevel::kO3);
  const auto refused = [](const char* name) { return refusal([name] { parse_opt_level(name); }); };
  EXPECT_EQ(refused("01"), "opt level 01: did you mean O1, with the letter O?");
  EXPECT_EQ(refused("o2"), "opt level o2: did you mean O2, with the letter O?");
  EXPECT_THAT(refused("fast"), HasSubstr("expected O0, O1, O2 or O3"));
}

TEST(Policy, LevelsSetWhatApexsDo) {
  const auto of = [](OptLevel level) { return make_policy({.opt_level = level}); };
  const Policy o0 = of(OptLevel::kO0), o1 = of(OptLevel::kO1), o2 = of(OptLevel::kO2), o3 = of(OptLevel::kO3);
  EXPECT_FALSE(o0.casts() || o0.cast_model || o0.master_weights || o0.keep_batchnorm_fp32);
  EXPECT_TRUE(o1.cast_ops && !o1.cast_model && !o1.master_weights);
  EXPECT_TRUE(o2.cast_model && o2.master_weights && o2.keep_batchnorm_fp32);
  EXPECT_TRUE(o3.cast_model && !o3.master_weights && !o3.keep_batchnorm_fp32);
}

TEST(Policy, EachPropertyCanBeOverridden) {
  EXPECT_TRUE(make_policy({.opt_level = OptLevel::kO3, .keep_batchnorm_fp32 = true}).keep_batchnorm_fp32);
  EXPECT_TRUE(make_policy({.opt_level = OptLevel::kO3, .master_weights = true}).master_weights);
  EXPECT_FALSE(make_policy({.opt_level = OptLevel::kO2, .master_weights = false}).master_weights);
  EXPECT_FALSE(make_policy({.opt_level = OptLevel::kO2, .cast_ops = false}).cast_ops);
  EXPECT_TRUE(make_policy({.opt_level = OptLevel::kO0, .cast_ops = true}).casts());
  const Policy cast = make_policy({.opt_level = OptLevel::kO1, .cast_model = true, .keep_batchnorm_fp32 = true});
  EXPECT_TRUE(cast.cast_model && cast.keep_batchnorm_fp32);
}

TEST(Policy, RefusesWhatDoesNotGoTogether) {
  EXPECT_THAT(refusal([] { make_policy({.opt_level = OptLevel::kO1, .keep_batchnorm_fp32 = true}); }),
              HasSubstr("keep_batchnorm_fp32 at O1: goes with O2 and O3"));
  EXPECT_THAT(refusal([] { make_policy({.opt_level = OptLevel::kO0, .master_weights = false}); }),
              HasSubstr("master_weights at O0"));
  EXPECT_THAT(refusal([] { make_policy({.dtype = c10::ScalarType::Float}); }),
              HasSubstr("dtype Float: expected BFloat16 or Half"));
}

TEST(Policy, HasAName) {
  EXPECT_EQ(Policy{}.name(), "O0 float32");
  EXPECT_EQ((Policy{.level = OptLevel::kO1}.name()), "O1 bfloat16");
  EXPECT_EQ((Policy{.level = OptLevel::kO2, .dtype = c10::ScalarType::Half}.name()), "O2 float16");
  EXPECT_EQ(make_policy({.opt_level = OptLevel::kO2, .keep_batchnorm_fp32 = false}).name(),
            "O2 bfloat16, BatchNorm too");
  EXPECT_EQ(make_policy({.opt_level = OptLevel::kO3, .master_weights = true}).name(), "O3 bfloat16, float32 masters");
}

TEST(ScalerOptions, Fp16ScalesByItself) {
  EXPECT_FALSE(scaler_options({.opt_level = OptLevel::kO2}).enabled);
  const ScalerOptions dynamic = scaler_options({.opt_level = OptLevel::kO2, .dtype = c10::ScalarType::Half});
  EXPECT_TRUE(dynamic.enabled && dynamic.dynamic);
  const ScalerOptions fixed = scaler_options({.loss_scale = 128});
  EXPECT_TRUE(fixed.enabled && !fixed.dynamic && fixed.init_scale == 128);
  EXPECT_THAT(refusal([] { scaler_options({.opt_level = OptLevel::kO0, .loss_scale = 128}); }),
              HasSubstr("loss_scale at O0"));
  EXPECT_EQ(scaler_options({.dtype = c10::ScalarType::Half, .hysteresis = 2}).hysteresis, 2);
  EXPECT_THROW(scaler_options({.min_loss_scale = 8, .max_loss_scale = 4}), ConfigError);
}

}  // namespace
}  // namespace lockstep::amp
