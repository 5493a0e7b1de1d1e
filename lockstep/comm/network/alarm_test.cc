#include "lockstep/comm/network/alarm.h"

#include <gtest/gtest.h>

#include <atomic>

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Waits until the count is `least`. Returns whether that came to pass.
bool reaches(const std::atomic<int>& count, int least) {
  for (const Deadline end(seconds(20)); count < least; std::this_thread::sleep_for(milliseconds(2))) {
    if (end.passed()) return false;
  }
  return true;
}

TEST(Alarm, RingsAtTheEndOfAPatienceAndAgain) {
  Alarm alarm;
  std::atomic<int> late = 0, early = 0;
  const Patience hour(Deadline(std::chrono::hours(1))), brief(Deadline(milliseconds(30)));
  const auto first = alarm.set(hour, [&] { ++late; });
  std::this_thread::sleep_for(milliseconds(10));  // the thread sleeps for an hour now
  auto second = alarm.set(brief, [&] {
    EXPECT_TRUE(brief.over());
    ++early;
  });
  EXPECT_TRUE(reaches(early, 3));
  second.reset();
  const int rung = early;
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(early, rung) << "nobody waits any more";
  EXPECT_EQ(late, 0);
}

TEST(Alarm, AnEndThatMovesIsAwaited) {
  Alarm alarm;
  std::atomic<int> asked = 0, rung = 0;
  const Patience moving(Deadline(milliseconds(10)), [&] { return milliseconds(++asked < 5 ? 20 : 0); });
  const auto set = alarm.set(moving, [&] {
    EXPECT_GE(asked, 5);
    ++rung;
  });
  EXPECT_TRUE(reaches(rung, 1));
}

TEST(Patience, EndsAtItsDeadlineUnlessThereIsMore) {
  const Deadline past(milliseconds(0)), future(seconds(20));
  EXPECT_TRUE(Patience(past).over());
  EXPECT_FALSE(Patience(future).over());
  EXPECT_FALSE(Patience(past, [] { return seconds(1); }).over());
  EXPECT_TRUE(Patience(past, [] { return seconds(-1); }).over());
  EXPECT_FALSE(Patience(future, [] { return seconds(-1); }).over());
}

}  // namespace
}  // namespace lockstep::comm
