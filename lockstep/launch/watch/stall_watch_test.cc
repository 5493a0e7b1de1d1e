#include "lockstep/launch/watch/stall_watch.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Two ranks that train, looked at once a second. A rank that waits has its peer's beat.
struct TwoRanks {
  std::optional<StallWatch::Stall> look(int64_t seconds) { return watch.look(ranks, now_ns += seconds * kSecond); }
  void step() {
    for (RankSample& rank : ranks) ++rank.step, rank.sequence += 3, rank.beat_ns = now_ns;
  }
  StallWatch watch;
  std::vector<RankSample> ranks = {{.running = true, .step = 1}, {.running = true, .step = 1}};
  int64_t now_ns = 100 * kSecond;
};

TEST(StallWatch, FindsTheRankThatIsBehind) {
  TwoRanks of;
  for (int i = 0; i < 20; ++i) {
    of.step();
    EXPECT_FALSE(of.look(1));
  }
  ++of.ranks[0].sequence;  // rank 0 waits in a collective that rank 1 has not begun
  EXPECT_FALSE(of.look(9));
  const auto stall = of.look(12);
  ASSERT_TRUE(stall);
  EXPECT_TRUE(stall->is_new);
  EXPECT_EQ(stall->suspects, std::vector{1});
  EXPECT_FALSE(of.look(1)->is_new) << "it is told once";
  of.step();
  EXPECT_FALSE(of.look(1));
  EXPECT_TRUE(of.look(30)->is_new) << "the next one is another";
}

TEST(StallWatch, WaitsFiveTimesAsLongAsTheLongSteps) {
  TwoRanks of;
  for (int i = 0; i < 100; ++i) {
    of.step();
    EXPECT_FALSE(of.look(20)) << "a step takes longer than the least patience";
  }
  EXPECT_EQ(of.watch.patience_ns(), 100 * kSecond);
  EXPECT_FALSE(of.look(99));
  EXPECT_TRUE(of.look(2));
}

TEST(StallWatch, ARankThatBeatsMakesProgress) {
  TwoRanks of;
  of.step();
  of.look(1);
  for (int i = 0; i < 10; ++i) {
    for (RankSample& rank : of.ranks) rank.beat_ns = of.now_ns;  // rank 0 saves, rank 1 waits for it
    EXPECT_FALSE(of.look(8));
  }
}

TEST(StallWatch, NothingIsSaidBeforeTheFirstStepNorOfAPause) {
  TwoRanks of;
  of.ranks[1].step = 0;
  EXPECT_FALSE(of.look(1000));
  for (int i = 0; i < 3; ++i) {
    of.step();
    EXPECT_FALSE(of.look(1));
  }
  of.now_ns += 1000 * kSecond;
  of.watch.resumed(of.now_ns);
  EXPECT_FALSE(of.look(1));
  EXPECT_TRUE(of.look(20));
}

TEST(StallWatch, TheFirstLookKnowsHowLongStepsTookSoFar) {
  TwoRanks of;
  const int64_t first_step_ns = of.now_ns;
  for (int i = 0; i < 50; ++i) of.now_ns += kSecond / 10, of.step();
  EXPECT_FALSE(of.watch.look(of.ranks, of.now_ns + 3 * kSecond, first_step_ns));
  EXPECT_TRUE(of.watch.look(of.ranks, of.now_ns + 11 * kSecond, first_step_ns));
}

TEST(StallWatch, AFirstStepMayTakeAMinute) {
  TwoRanks of;
  of.look(1);
  EXPECT_FALSE(of.look(59));
  EXPECT_TRUE(of.look(2));
}

TEST(StallWatch, AHangIsALongStallOfARankThatDoesNotWait) {
  TwoRanks of;
  const auto look = [&](int64_t seconds) {
    return of.watch.look(of.ranks, of.now_ns += seconds * kSecond, 0, 60 * kSecond);
  };
  for (int i = 0; i < 5; ++i) {
    of.step();
    EXPECT_FALSE(look(1));
  }
  of.ranks[0].waiting = true;
  const auto stall = look(70);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->suspects, std::vector{1}) << "rank 0 waits, and has begun no more collectives than rank 1";
  EXPECT_FALSE(stall->is_hang) << "it is told first";
  EXPECT_TRUE(look(1)->is_hang);
  of.ranks[1].waiting = true;
  EXPECT_FALSE(look(1)->is_hang) << "they give up by themselves";
}

TEST(StallWatch, NothingHangsBeforeAStepsTimeIsKnown) {
  TwoRanks of;
  EXPECT_FALSE(of.watch.look(of.ranks, of.now_ns, 0, kSecond));
  for (int i = 1; i < 10; ++i) {
    const auto stall = of.watch.look(of.ranks, of.now_ns + i * 100 * kSecond, 0, kSecond);
    ASSERT_TRUE(stall);
    EXPECT_FALSE(stall->is_hang);
  }
}

TEST(StallWatch, RanksThatHaveEndedDoNotCount) {
  TwoRanks of;
  of.step();
  of.look(1);
  of.ranks[1].running = false;
  for (int i = 0; i < 30; ++i) {
    ++of.ranks[0].step;
    EXPECT_FALSE(of.look(1));
  }
  of.ranks[0].running = false;
  EXPECT_FALSE(of.look(1000));
}

}  // namespace
}  // namespace lockstep::launch
