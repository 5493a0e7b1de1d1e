#include "lockstep/comm/quiet_c10d.h"

#include <c10/util/Logging.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>

namespace lockstep::comm {
namespace {

TEST(QuietC10d, SilencesWarningsWhileItLives) {
  unsetenv("TORCH_CPP_LOG_LEVEL");
  const int before = FLAGS_caffe2_log_level;
  {
    const QuietC10d quiet;
    EXPECT_GT(FLAGS_caffe2_log_level, 2);
  }
  EXPECT_EQ(FLAGS_caffe2_log_level, before);
}

// As in ranks that are threads of one process.
TEST(QuietC10d, TheLastOneBringsTheWarningsBack) {
  unsetenv("TORCH_CPP_LOG_LEVEL");
  const int before = FLAGS_caffe2_log_level;
  auto first = std::make_unique<QuietC10d>(), second = std::make_unique<QuietC10d>();
  first.reset();
  EXPECT_GT(FLAGS_caffe2_log_level, 2);
  second.reset();
  EXPECT_EQ(FLAGS_caffe2_log_level, before);
}

TEST(QuietC10d, LeavesTheLevelThatTheUserAskedFor) {
  setenv("TORCH_CPP_LOG_LEVEL", "INFO", 1);
  const int before = FLAGS_caffe2_log_level;
  {
    const QuietC10d quiet;
    EXPECT_EQ(FLAGS_caffe2_log_level, before);
  }
  unsetenv("TORCH_CPP_LOG_LEVEL");
}

}  // namespace
}  // namespace lockstep::comm
