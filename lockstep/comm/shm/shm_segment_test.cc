#include "lockstep/comm/shm/shm_segment.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "lockstep/base/clock.h"

namespace lockstep::comm {
namespace {

// Two threads that wait for each other in turn, ten thousand times: a lost wake-up would cost a second each.
TEST(ShmSegment, NoWakeUpIsLost) {
  const auto segment = std::make_unique<ShmSegment>();
  constexpr uint64_t kRounds = 10000;
  const auto play = [&segment](size_t self) {
    auto& mine = segment->published[self];
    auto& theirs = segment->published[1 - self];
    for (uint64_t round = 1; round <= kRounds; ++round) {
      mine.value.store(round);
      segment->ring();
      while (theirs.value.load(std::memory_order_acquire) < round) {
        const uint32_t seen = segment->event.load();
        if (theirs.value.load(std::memory_order_acquire) < round) segment->sleep(seen, 1'000'000'000);
      }
    }
  };
  const Stopwatch watch;
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_EQ(segment->waiters.load(), 0u);
  EXPECT_LT(watch.seconds(), 20);
}

TEST(ShmSegment, TheFirstToGiveUpIsRemembered) {
  const auto segment = std::make_unique<ShmSegment>();
  segment->abort(3, "disk full");
  segment->abort(1, "later");
  EXPECT_EQ(segment->aborted.load(), 4u);
  EXPECT_EQ(segment->reason.get(), "disk full");
}

TEST(ShmSegment, SleepEndsByItself) {
  const auto segment = std::make_unique<ShmSegment>();
  const Stopwatch watch;
  segment->sleep(segment->event.load(), 5'000'000);
  EXPECT_GE(watch.seconds(), 0.004);
}

}  // namespace
}  // namespace lockstep::comm
