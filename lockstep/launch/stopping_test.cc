#include "lockstep/launch/stopping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr int64_t kMs = 1'000'000, kBegin = 5000 * kMs, kPatience = 2000 * kMs;

class StoppingTest : public testing::Test {
 protected:
  // The signals of this moment, by rank; ranks that are spared go to spared_.
  std::vector<std::pair<size_t, int>> signals(int64_t after_ms) {
    std::vector<std::pair<size_t, int>> sent;
    stopping_.act(
        board_, kBegin + after_ms * kMs, [&](size_t rank, int signal) { sent.emplace_back(rank, signal); },
        [&](size_t rank) { spared_.push_back(rank); });
    return sent;
  }
  int wait_ms(int64_t after_ms) const { return stopping_.wait_ms(kBegin + after_ms * kMs); }

  const Descriptor memory_ = create_memfd("board", sizeof(Board));
  const Mapping mapping_{memory_.get()};
  Board& board_ = *Board::create(mapping_.data(), 2);
  Stopping stopping_{2, kPatience};
  std::vector<size_t> spared_;
};

TEST_F(StoppingTest, AllAreAskedAndThenKilled) {
  EXPECT_EQ(wait_ms(0), -1);
  stopping_.begin(kBegin);
  stopping_.begin(kBegin + 100 * kMs);
  EXPECT_EQ(wait_ms(100), 300);
  EXPECT_THAT(signals(399), IsEmpty());
  EXPECT_THAT(signals(400), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM)));
  EXPECT_THAT(signals(700), ElementsAre(Pair(0, SIGKILL), Pair(1, SIGKILL)));
  EXPECT_EQ(wait_ms(700), -1);
  EXPECT_THAT(spared_, IsEmpty());
}

TEST_F(StoppingTest, ARankThatSavesIsLetBeUntilItHasSaved) {
  stopping_.begin(kBegin);
  {
    const SavingOnBoard saving(board_.ranks[0]);
    EXPECT_THAT(signals(400), ElementsAre(Pair(1, SIGTERM)));
    EXPECT_THAT(signals(700), ElementsAre(Pair(1, SIGKILL)));
    EXPECT_EQ(wait_ms(700), 100);
    EXPECT_THAT(signals(800), IsEmpty());
    EXPECT_THAT(spared_, ElementsAre(0, 0));
  }
  EXPECT_TRUE(stopping_.has_spared(0));
  EXPECT_FALSE(stopping_.has_spared(1));
  EXPECT_THAT(signals(1200), IsEmpty()) << "time to notice the failure";
  EXPECT_THAT(signals(1600), ElementsAre(Pair(0, SIGTERM)));
  {
    const SavingOnBoard saving(board_.ranks[0]);
    EXPECT_THAT(signals(1900), IsEmpty()) << "it has begun another one meanwhile";
  }
  EXPECT_THAT(signals(2300), IsEmpty());
  EXPECT_THAT(signals(2700), ElementsAre(Pair(0, SIGTERM)));
  EXPECT_THAT(signals(3000), ElementsAre(Pair(0, SIGKILL)));
}

TEST_F(StoppingTest, AFileThatMakesNoProgressIsNotWaitedForForEver) {
  stopping_.begin(kBegin);
  const SavingOnBoard saving(board_.ranks[1]);
  board_.ranks[1].beat_ns.store(kBegin + 1000 * kMs);
  signals(700);
  signals(2900);
  EXPECT_EQ(spared_.size(), 2u);
  EXPECT_THAT(signals(3300), IsEmpty());
  EXPECT_THAT(signals(3700), ElementsAre(Pair(1, SIGTERM)));
  EXPECT_THAT(signals(4000), ElementsAre(Pair(1, SIGKILL)));
  EXPECT_EQ(spared_.size(), 2u);
}

// Ctrl-Z, for a minute, in the time that ranks have to notice the failure.
TEST_F(StoppingTest, APauseOfAllRanksDoesNotCount) {
  stopping_.resumed(kBegin - 100 * kMs);
  EXPECT_EQ(wait_ms(0), -1) << "nothing has failed";
  stopping_.begin(kBegin);
  stopping_.resumed(kBegin + 60'000 * kMs);
  EXPECT_EQ(wait_ms(60'100), 300);
  EXPECT_THAT(signals(60'100), IsEmpty());
  EXPECT_THAT(signals(60'400), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM)));
}

TEST_F(StoppingTest, APauseOfAllRanksIsNoTimeWithoutProgress) {
  stopping_.begin(kBegin);
  const SavingOnBoard saving(board_.ranks[0]);
  EXPECT_THAT(signals(400), ElementsAre(Pair(1, SIGTERM)));
  board_.ranks[0].beat_ns.store(kBegin + 400 * kMs);
  stopping_.resumed(kBegin + 60'000 * kMs);
  signals(61'900);
  EXPECT_THAT(spared_, ElementsAre(0, 0));
  EXPECT_THAT(signals(62'300), IsEmpty()) << "it was saving when it was last looked at";
  EXPECT_THAT(signals(62'700), ElementsAre(Pair(0, SIGTERM)));
}

TEST_F(StoppingTest, TheRanksOwnerNeedNotWait) {
  const SavingOnBoard saving(board_.ranks[0]);
  stopping_.begin_asking(kBegin);
  EXPECT_THAT(signals(0), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM)));
  EXPECT_THAT(signals(300), ElementsAre(Pair(0, SIGKILL), Pair(1, SIGKILL)));
  EXPECT_THAT(spared_, IsEmpty());
}

TEST_F(StoppingTest, TheRanksOwnerWaitsNoLongerForASaveUnderWay) {
  stopping_.begin(kBegin);
  const SavingOnBoard saving(board_.ranks[0]);
  EXPECT_THAT(signals(400), ElementsAre(Pair(1, SIGTERM)));
  EXPECT_THAT(spared_, ElementsAre(0));
  board_.ranks[0].beat_ns.store(kBegin + 501 * kMs);  // after the time that act() is told
  stopping_.begin_asking(kBegin + 500 * kMs);
  EXPECT_EQ(wait_ms(500), 0);
  EXPECT_THAT(signals(500), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM)));
  EXPECT_THAT(signals(800), ElementsAre(Pair(0, SIGKILL), Pair(1, SIGKILL)));
  EXPECT_THAT(spared_, ElementsAre(0));
}

}  // namespace
}  // namespace lockstep::launch
