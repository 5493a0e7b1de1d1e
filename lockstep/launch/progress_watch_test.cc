#include "lockstep/launch/progress_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "lockstep/base/clock.h"

namespace lockstep::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;

// Three ranks, each a process; all are at step 7.
class WaitedFor : public ::testing::Test {
 protected:
  WaitedFor() {
    Board::create(board_.get(), 3);
    for (int i = 0; i < 3; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        for (;;) pause();
      }
      BoardRank& rank = board_->ranks[static_cast<size_t>(i)];
      rank.begin();
      rank.pid = child;
      rank.state = RankState::kRunning;
      rank.step = 7;
      rank.sequence = 9;
      rank.beat_ns = now_;
    }
  }
  ~WaitedFor() override {
    for (int i = 0; i < 3; ++i) {
      kill(rank(i).pid, SIGKILL);
      waitpid(rank(i).pid, nullptr, 0);
    }
  }
  BoardRank& rank(int i) { return board_->ranks[static_cast<size_t>(i)]; }
  // Nine seconds later, rank 0 has ended.
  auto found() const {
    const ProgressWatch watch(*board_, /*timeout_ns=*/8 * kSecond, /*first_rank=*/0, /*world_size=*/3);
    return watch.waited_for({false, true, true}, now_ + 9 * kSecond);
  }

  const std::unique_ptr<Board> board_ = std::make_unique<Board>();
  const int64_t now_ = monotonic_ns();
};

TEST_F(WaitedFor, IsWhoOthersHaveMissed) {
  EXPECT_FALSE(found()) << "rank 0 has failed for a reason of its own";
  rank(2).doing.set("waiting for data");
  rank(0).miss(2);
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->rank, 2);
  EXPECT_EQ(
      found()->error,
      "hung: no progress for 9 s (others have given up waiting for it); it is alive, at step 7, waiting for data");
}

// Until the first step somebody may look through data: it is told soon, and ended late.
TEST_F(WaitedFor, ASlowStartIsToldAndEndedAfterAnHour) {
  for (int i = 0; i < 3; ++i) rank(i).step = 0;
  rank(0).counts_steps = 1;
  rank(0).doing.set("opening the data");
  const pid_t third = rank(2).pid.exchange(0);  // as before it has joined
  ProgressWatch watch(*board_, /*timeout_ns=*/8 * kSecond, /*first_rank=*/4, /*world_size=*/3);
  const auto lines = [&](int64_t seconds) { return watch.look({true, true, true}, now_ + seconds * kSecond).lines; };
  EXPECT_THAT(lines(1), IsEmpty());
  EXPECT_THAT(lines(59), IsEmpty());
  const auto told = lines(62);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0],
              AllOf(HasSubstr("warning: no first step yet, and no progress for 61 s; rank 4 (pid "),
                    HasSubstr("is alive, opening the data; rank 5 "), HasSubstr("; rank 6 has not joined the others")));
  EXPECT_THAT(lines(100), IsEmpty()) << "once";
  rank(1).beat_ns = now_ + 90 * kSecond;
  EXPECT_THAT(lines(200), IsEmpty()) << "something moves";
  EXPECT_THAT(lines(212), SizeIs(1)) << "and again after twice as long";
  const auto hang = [&](int64_t seconds) { return watch.look({true, true, true}, now_ + seconds * kSecond).hang; };
  EXPECT_FALSE(hang(90 + 3500));
  rank(0).doing.set("waiting at once");
  const auto found = hang(90 + 3603);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1) << "rank 0 waits for it";
  EXPECT_THAT(found->error, HasSubstr("hung: no progress for 3603 s (before the first step); it is alive"));
  EXPECT_FALSE(watch.look({false, true, false}, now_ + 4000 * kSecond).hang) << "nobody waits for it";
  rank(1).step = 1;
  EXPECT_THAT(lines(5000), IsEmpty());
  EXPECT_FALSE(hang(5001));
  rank(1).step = 0;  // the command's next program
  EXPECT_FALSE(hang(20000));
  rank(2).pid = third;  // which the fixture ends
}

// Each node has one rank: the others wait elsewhere.
TEST_F(WaitedFor, ALoneRankOfItsNodeHasHungForTheOthers) {
  rank(0).step = 0;
  rank(0).counts_steps = 1;
  const auto hang = [&](int world_size) {
    ProgressWatch watch(*board_, 8 * kSecond, 0, world_size);
    watch.look({true}, now_);
    return watch.look({true}, now_ + 3700 * kSecond).hang;
  };
  EXPECT_FALSE(hang(1));
  ASSERT_TRUE(hang(2));
  EXPECT_EQ(hang(2)->rank, 0);
}

TEST_F(WaitedFor, ASlowStartOfAProgramThatCountsNoStepsIsItsOwn) {
  for (int i = 0; i < 3; ++i) rank(i).step = 0;
  ProgressWatch watch(*board_, 8 * kSecond, 0, 3);
  watch.look({true, true, true}, now_);
  EXPECT_THAT(watch.look({true, true, true}, now_ + 500 * kSecond).lines, IsEmpty());
}

TEST_F(WaitedFor, MayBeStoppedWhateverItSays) {
  rank(0).miss(1);
  rank(1).doing.set("waiting at all_reduce");
  rank(2).doing.set("waiting at all_reduce");
  EXPECT_FALSE(found()) << "it waits for another one itself";
  kill(rank(1).pid, SIGSTOP);
  ASSERT_EQ(waitpid(rank(1).pid, nullptr, WUNTRACED), rank(1).pid);
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->rank, 1);
  EXPECT_THAT(found()->error, HasSubstr("it is stopped (SIGSTOP"));
}

TEST_F(WaitedFor, IsNobodyWhoHasEndedOrSavesOrMissesOthers) {
  rank(0).miss(1);
  rank(0).miss(2);
  rank(1).saving = 1;
  rank(2).fail(69, "rank 1 is gone");
  EXPECT_FALSE(found());
  rank(1).saving = 0;
  EXPECT_EQ(found()->rank, 1);
  rank(1).miss(2);
  EXPECT_FALSE(found());
}

TEST_F(WaitedFor, IsNobodyWhoHasDiedOrIsMissedByOneThatGoesOn) {
  rank(1).miss(2);
  EXPECT_FALSE(found()) << "rank 1 has caught its error, and trains";
  rank(0).miss(2);
  ASSERT_TRUE(found());
  kill(rank(2).pid, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(rank(2).pid), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(found()) << "the launcher has not reaped it yet";
}

// Rank 0 waits for rank 1, which waits for rank 2, over a network.
TEST_F(WaitedFor, IsWhoHoldsUpTheOneThatIsMissed) {
  rank(0).miss(1);
  rank(1).blocked = 1;
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->rank, 2);
  EXPECT_THAT(found()->error, HasSubstr("no progress for 9 s (others wait for ranks that wait for it); it is alive"));
  rank(2).beat_ns = now_ + 2 * kSecond;
  EXPECT_FALSE(found()) << "it has gone on since";
  rank(2).beat_ns = now_;
  rank(2).blocked = 1;
  EXPECT_FALSE(found()) << "who is missed is on another node";
  rank(2).blocked = 0;
  rank(2).state = RankState::kStarting;
  EXPECT_FALSE(found()) << "it has not come to init(), so nobody can wait for it";
  rank(2).state = RankState::kRunning;
  rank(1).blocked = 0;
  EXPECT_EQ(found()->rank, 1);
}

// Rank 1 waits for rank 2, and ends as soon as it hears that rank 0 has given up waiting for it.
TEST_F(WaitedFor, IsWhoHoldsUpOneThatHasGivenUpToo) {
  rank(0).miss(1);
  rank(1).blocked = 1;
  rank(1).fail(69, "rank 0 gave up");
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->rank, 2);
  rank(2).beat_ns = now_ + 2 * kSecond;
  EXPECT_FALSE(found()) << "it has gone on since";
  rank(2).beat_ns = now_;
  rank(1).fail(70, "a bug");
  EXPECT_FALSE(found()) << "rank 1 has failed by itself";
}

// The ranks of another node have failed because rank 2 stands still here.
TEST_F(WaitedFor, MayHaveBeenGivenUpOnAnotherNode) {
  ProgressWatch watch(*board_, /*timeout_ns=*/8 * kSecond, /*first_rank=*/0, /*world_size=*/3);
  const auto given_up = [&](int64_t seconds) {
    return watch.given_up_elsewhere({true, true, true}, now_ + seconds * kSecond);
  };
  rank(0).blocked = 1;
  rank(1).blocked = 1;
  EXPECT_FALSE(given_up(20)) << "it may be within a long step: none's time is known";
  ASSERT_TRUE(given_up(70));
  EXPECT_EQ(given_up(70)->rank, 2);
  EXPECT_THAT(given_up(70)->error, HasSubstr("ranks of other nodes have given up waiting for it"));
  kill(rank(2).pid, SIGSTOP);
  ASSERT_EQ(waitpid(rank(2).pid, nullptr, WUNTRACED), rank(2).pid);
  EXPECT_FALSE(given_up(5)) << "it is not there for as long as others wait";
  ASSERT_TRUE(given_up(8));
  EXPECT_EQ(given_up(8)->rank, 2);
  rank(2).step = 0;
  EXPECT_FALSE(given_up(70)) << "it has not begun to train";
  rank(2).step = 7;
  rank(2).saving = 1;
  EXPECT_FALSE(given_up(70));
  rank(2).saving = 0;
  watch.resumed(now_ + 5 * kSecond);
  EXPECT_FALSE(given_up(8)) << "all were stopped";
}

// It has not come to init(), which tells its number.
TEST_F(WaitedFor, MayNotHaveJoined) {
  rank(0).miss(2);
  const int pid = rank(2).pid.exchange(0);
  const auto hang = found();
  rank(2).pid = pid;
  ASSERT_TRUE(hang);
  EXPECT_THAT(hang->error, HasSubstr("it has not started"));
}

TEST_F(WaitedFor, IsWhoHasStoodStillForLongest) {
  rank(0).miss(1);
  rank(0).miss(2);
  rank(2).beat_ns = now_ - kSecond;
  EXPECT_EQ(found()->rank, 2);
}

}  // namespace
}  // namespace lockstep::launch
