#include "lockstep/amp/opt_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::amp {
namespace {

std::string refusal(const char* name) {
  try {
    parse_opt_level(name);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(OptLevel, NamesAreRead) {
  EXPECT_EQ(parse_opt_level("O0"), OptLevel::kO0);
  EXPECT_EQ(parse_opt_level("O1"), OptLevel::kO1);
  EXPECT_EQ(refusal("01"), "opt level 01: did you mean O1, with the letter O?");
  EXPECT_EQ(refusal("o1"), "opt level o1: did you mean O1, with the letter O?");
  EXPECT_THAT(refusal("O2"), testing::HasSubstr("not available yet"));
  EXPECT_THAT(refusal("fast"), testing::HasSubstr("expected O0 or O1"));
}

TEST(Policy, HasAName) {
  EXPECT_EQ(Policy{}.name(), "O0 float32");
  EXPECT_EQ((Policy{.level = OptLevel::kO1}.name()), "O1 bfloat16");
  EXPECT_EQ((Policy{.level = OptLevel::kO1, .dtype = c10::ScalarType::Half}.name()), "O1 float16");
}

TEST(OptLevel, AutoIsWhatTheCpuMultipliesItself) {
  EXPECT_EQ(auto_level({.amx_bf16 = true}), OptLevel::kO1);
  EXPECT_EQ(auto_level({.avx512_bf16 = true}), OptLevel::kO1);
  EXPECT_EQ(auto_level({.avx512 = true}), OptLevel::kO0);
}

}  // namespace
}  // namespace lockstep::amp
