#include "lockstep/doctor/precision.h"

#include <gtest/gtest.h>

namespace lockstep::doctor {
namespace {

TEST(Precision, IsWhatTheWorkerMeasured) {
  const auto p = judge_precision(
      0, R"({"fp32_gflops": 90.5, "bf16_gflops": 460, "fp16_gflops": 0, "auto": "O1 bfloat16", "why": "5.1 times"})",
      "");
  EXPECT_EQ(p.fp32, 90.5);
  EXPECT_EQ(p.bf16, 460);
  EXPECT_EQ(p.fp16, 0);
  EXPECT_EQ(p.chosen, "O1 bfloat16");
  EXPECT_EQ(p.why, "5.1 times");
}

TEST(Precision, AFailureSaysWhy) {
  EXPECT_EQ(judge_precision(74, "", "error: no memory\nmore\n").why, "no memory");
  EXPECT_EQ(judge_precision(132, "", "").why, "ended with exit code 132");
  for (const char* out : {"", "[", "{}", R"({"fp32_gflops": "fast"})"}) {
    EXPECT_EQ(judge_precision(0, out, "").why, "did not say what it measured");
    EXPECT_EQ(judge_precision(0, out, "").chosen, "");
  }
}

TEST(Precision, IsMeasuredByAWorker) {
  EXPECT_EQ(precision_command("w"), (std::vector<std::string>{"w", "bench", "precision", "--json"}));
}

}  // namespace
}  // namespace lockstep::doctor
