#include "lockstep/base/stop_request.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using enum StopRequest::Meaning;
constexpr int64_t kSecond = 1'000'000'000;

TEST(StopRequest, SignalsThatComeTogetherAreOne) {
  StopRequest stop;
  EXPECT_FALSE(stop.asked());
  EXPECT_EQ(stop.take(SIGTERM, 5 * kSecond), kFirst);
  EXPECT_TRUE(stop.asked());
  EXPECT_EQ(stop.take(SIGTERM, 5 * kSecond + 1), kTheSame);
  EXPECT_EQ(stop.take(SIGINT, 6 * kSecond - 1), kTheSame);
  EXPECT_EQ(stop.take(SIGINT, 6 * kSecond), kOnceMore);
}

TEST(StopRequest, AClosedTerminalNeverAsksAgain) {
  StopRequest stop;
  EXPECT_EQ(stop.take(SIGHUP, kSecond), kFirst);
  EXPECT_EQ(stop.take(SIGHUP, 9 * kSecond), kTheSame);
  EXPECT_EQ(stop.take(SIGTERM, 9 * kSecond), kOnceMore);
}

// Slurm's --signal=USR1@60, and the SIGTERM at the limit.
TEST(StopRequest, TheEndAfterAWarningIsTheSameRequest) {
  StopRequest stop;
  EXPECT_EQ(stop.take(SIGUSR1, kSecond), kFirst);
  EXPECT_TRUE(stop.asked());
  EXPECT_EQ(stop.take(SIGUSR1, 9 * kSecond), kTheSame);
  EXPECT_EQ(stop.take(SIGTERM, 61 * kSecond), kTheSame);
  EXPECT_EQ(stop.take(SIGTERM, 63 * kSecond), kOnceMore);
  EXPECT_EQ(stop.take(SIGUSR1, 64 * kSecond), kTheSame);
}

}  // namespace
}  // namespace lockstep
