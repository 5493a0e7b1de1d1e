#include "lockstep/amp/auto_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace lockstep::amp {
namespace {

using testing::HasSubstr;

std::string chosen(const Rates& rates) { return auto_level(rates).policy.name(); }

TEST(AutoLevel, TakesWhatIsFastest) {
  EXPECT_EQ(chosen({.fp32 = 90, .bf16 = 460, .fp16 = 300}), "O1 bfloat16");
  EXPECT_EQ(chosen({.fp32 = 90, .bf16 = 460, .fp16 = 500}), "O1 bfloat16") << "not worth a loss scale";
  EXPECT_EQ(chosen({.fp32 = 90, .bf16 = 100, .fp16 = 300}), "O1 float16");
  EXPECT_EQ(chosen({.fp32 = 90, .bf16 = 95, .fp16 = 60}), "O0 float32");
  EXPECT_EQ(chosen({.fp32 = 90, .bf16 = 0, .fp16 = 0}), "O0 float32");
}

TEST(AutoLevel, SaysWhy) {
  EXPECT_EQ(auto_level(Rates{.fp32 = 90, .bf16 = 459, .fp16 = 0}).why, "5.1 times fp32 here");
  EXPECT_EQ(auto_level(Rates{.fp32 = 90, .bf16 = 9, .fp16 = 0}).why, "16 bits are 0.1 times fp32 here");
}

TEST(AutoLevel, WithoutRatesTheCpusInstructionsDecide) {
  EXPECT_EQ(auto_level(CpuFeatures{.amx_bf16 = true}).policy.name(), "O1 bfloat16");
  EXPECT_EQ(auto_level(CpuFeatures{.avx512_bf16 = true}).policy.name(), "O1 bfloat16");
  EXPECT_EQ(auto_level(CpuFeatures{.avx512_fp16 = true}).policy.name(), "O1 float16");
  EXPECT_EQ(auto_level(CpuFeatures{.avx512 = true}).policy.name(), "O0 float32");
}

TEST(AutoLevel, IsMeasuredOnce) {
  const std::string folder = testing::TempDir() + "auto_level";
  std::filesystem::remove_all(folder);
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const AutoChoice first = auto_level();
  ASSERT_TRUE(read_rates(cache_folder()));
  write_rates(cache_folder(), {.fp32 = 1, .bf16 = 7, .fp16 = 0});
  EXPECT_EQ(auto_level().why, "7.0 times fp32 here");
  std::filesystem::remove_all(folder);
  unsetenv("XDG_CACHE_HOME");
}

TEST(AutoLevel, ADtypeWithoutInstructionsIsWarnedOf) {
  const Policy bf16{.level = OptLevel::kO1}, fp16{.level = OptLevel::kO1, .dtype = at::kHalf};
  const CpuFeatures amx{.amx_bf16 = true};
  EXPECT_EQ(slow_warning(bf16, amx, {}), "");
  EXPECT_THAT(slow_warning(fp16, amx, {}), HasSubstr("no AVX512-FP16: float16 works"));
  EXPECT_EQ(slow_warning(fp16, {.avx512_fp16 = true}, {}), "");
  EXPECT_THAT(slow_warning(bf16, {}, {}), HasSubstr("no AMX or AVX512-BF16: bfloat16 works"));
  EXPECT_EQ(slow_warning(Policy{}, {}, {}), "");
  const Rates rates{.fp32 = 100, .bf16 = 500, .fp16 = 1};
  EXPECT_EQ(slow_warning(bf16, {}, rates), "") << "what was measured counts";
  EXPECT_EQ(slow_warning(fp16, {.avx512_fp16 = true}, rates),
            "float16 is slow here: a convolution runs at 0.01 of its speed in fp32; --amp auto takes what is fastest");
}

}  // namespace
}  // namespace lockstep::amp
