#include "lockstep/launch/escalation.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

constexpr int64_t kMs = 1'000'000, kBegin = 5000 * kMs;

TEST(Escalation, AsksThenKills) {
  Escalation escalation;
  EXPECT_EQ(escalation.wait_ms(kBegin), -1);
  EXPECT_FALSE(escalation.due(kBegin));
  escalation.begin(kBegin);
  escalation.begin(kBegin + 100 * kMs);
  EXPECT_EQ(escalation.begun_ns(), kBegin);
  EXPECT_EQ(escalation.wait_ms(kBegin + 150 * kMs), 250);
  EXPECT_FALSE(escalation.due(kBegin + 399 * kMs));
  EXPECT_EQ(escalation.due(kBegin + 400 * kMs), SIGTERM);
  EXPECT_FALSE(escalation.due(kBegin + 400 * kMs));
  EXPECT_EQ(escalation.due(kBegin + 900 * kMs), SIGKILL);
  EXPECT_EQ(escalation.wait_ms(kBegin + 900 * kMs), -1);
}

TEST(Escalation, BothAreDueAfterALongSleep) {
  Escalation escalation;
  escalation.begin(kBegin);
  EXPECT_EQ(escalation.due(kBegin + 9000 * kMs), SIGTERM);
  EXPECT_EQ(escalation.due(kBegin + 9000 * kMs), SIGKILL);
  EXPECT_FALSE(escalation.due(kBegin + 9000 * kMs));
}

TEST(Escalation, BeginsAnew) {
  Escalation escalation;
  escalation.begin(kBegin);
  EXPECT_EQ(escalation.due(kBegin + 400 * kMs), SIGTERM);
  escalation.begin_anew(kBegin + 600 * kMs);
  EXPECT_EQ(escalation.wait_ms(kBegin + 700 * kMs), 300);
  EXPECT_EQ(escalation.due(kBegin + 1000 * kMs), SIGTERM);
}

TEST(Escalation, AsksAtOnceWhereThatIsWanted) {
  Escalation escalation;
  escalation.begin_asking(kBegin);
  EXPECT_EQ(escalation.due(kBegin), SIGTERM);
  EXPECT_EQ(escalation.wait_ms(kBegin), 300);
}

}  // namespace
}  // namespace lockstep::launch
