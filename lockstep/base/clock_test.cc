#include "lockstep/base/clock.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using std::chrono::milliseconds;

TEST(Clock, ADeadlineThatHasPassedLeavesAMillisecond) {
  EXPECT_EQ(Deadline(milliseconds(-500)).left_ms(), milliseconds(1));
  EXPECT_TRUE(Deadline(milliseconds(-500)).passed());
  const Deadline far(std::chrono::hours(1));
  EXPECT_FALSE(far.passed());
  EXPECT_GT(far.left_ms(), std::chrono::minutes(59));
  EXPECT_LE(far.left_ms(), std::chrono::hours(1));
}

TEST(Clock, TheLongestTimesDoNotOverflow) {
  for (const Deadline& deadline : {Deadline(milliseconds::max()), Deadline(std::chrono::nanoseconds::max()),
                                   Deadline(std::chrono::hours::max())}) {
    EXPECT_FALSE(deadline.passed());
    EXPECT_GT(deadline.left(), std::chrono::hours(24 * 365));
  }
  EXPECT_EQ(bounded(milliseconds(7)), milliseconds(7));
  EXPECT_EQ(bounded(milliseconds::max()), kLongestWait);
}

TEST(Clock, SecondsAreTenths) {
  const double since = seconds_since(monotonic_ns() - 12'340'000'000);
  EXPECT_GE(since, 12.3);
  EXPECT_DOUBLE_EQ(since * 10, std::round(since * 10));
}

}  // namespace
}  // namespace lockstep
