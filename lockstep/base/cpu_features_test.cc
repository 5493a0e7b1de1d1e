#include "lockstep/base/cpu_features.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(CpuFeatures, AreReadFromTheFirstCore) {
  const auto amx =
      parse_cpu_features("model name\t: A CPU\nflags\t\t: fpu avx512f amx_bf16 amx_tile\n\nflags\t: none\n");
  EXPECT_EQ(amx.model, "A CPU");
  EXPECT_TRUE(amx.amx_bf16 && amx.avx512 && !amx.avx512_bf16);
  const auto old = parse_cpu_features("flags\t\t: fpu avx2\n");
  EXPECT_FALSE(old.amx_bf16 || old.avx512 || old.avx512_bf16 || old.avx512_fp16);
  EXPECT_EQ(parse_cpu_features("").model, "");
}

TEST(CpuFeatures, OfThisMachineHaveAName) { EXPECT_NE(detect_cpu_features().model, ""); }

}  // namespace
}  // namespace lockstep
