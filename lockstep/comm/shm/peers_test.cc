#include "lockstep/comm/shm/peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

class PeersTest : public testing::Test {
 protected:
  Descriptor memory_ = create_memfd("board", sizeof(Board));
  Mapping mapping_{memory_.get()};
  Board* board_ = Board::create(mapping_.data(), 3);

  std::string complaint(Peers& peers) {
    try {
      peers.check(std::vector<int>{0, 1, 2}, "a fold");
    } catch (const CommError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(PeersTest, ARankWritesItsPid) {
  Peers peers(board_, 1, 3);
  EXPECT_EQ(board_->ranks[1].pid.load(), getpid());
  EXPECT_EQ(board_->ranks[1].state.load(), RankState::kRunning);
  EXPECT_EQ(complaint(peers), "") << "peers that have not started yet are not dead";
}

TEST_F(PeersTest, AFailedPeerIsQuoted) {
  Peers peers(board_, 0, 3);
  board_->ranks[2].fail(65, "a.idx: damaged");
  EXPECT_EQ(complaint(peers), "rank 2 failed: a.idx: damaged (rank 0 was at a fold)");
}

TEST_F(PeersTest, ADeadPeerIsSeen) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  board_->ranks[1].pid.store(child);
  Peers peers(board_, 0, 3);
  EXPECT_EQ(complaint(peers), "");
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_THAT(complaint(peers), testing::HasSubstr("died while rank 0 waited for it at a fold"));
  waitpid(child, nullptr, 0);
  Peers later(board_, 0, 3);
  EXPECT_THAT(complaint(later), testing::HasSubstr("died")) << "also one that was gone before it was looked at";
}

// A look that begins while the peer runs may end after the peer's end.
TEST_F(PeersTest, APeerThatSaysItsErrorIsQuotedEvenIfItEndsDuringTheLook) {
  BoardRank& rank = board_->ranks[1];
  for (int turn = 0; turn < 300; ++turn) {
    rank.state.store(RankState::kRunning);
    const pid_t child = fork();
    if (child == 0) {
      rank.fail(65, "a.idx: damaged");
      _exit(65);
    }
    rank.pid.store(child);
    Peers peers(board_, 0, 3);
    std::string told;
    while (told.empty()) told = complaint(peers);
    EXPECT_THAT(told, testing::HasSubstr("failed: a.idx: damaged"));
    waitpid(child, nullptr, 0);
  }
}

// The command of a rank may begin with a program that joins no world, under our launcher.
TEST_F(PeersTest, AProgramThatHasJoinedNoWorldIsNoDeadPeer) {
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    _exit(read(go[0], &byte, 1) == 1 ? 0 : 1);
  }
  BoardRank& rank = board_->ranks[1];
  rank.pid.store(child);
  board_->ranks[0].worlds.store(1);
  Peers peers(board_, 0, 3);
  EXPECT_EQ(complaint(peers), "");
  ASSERT_EQ(write(go[1], "x", 1), 1);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(complaint(peers), "") << "it was killed, and the command goes on";
  rank.finish(0);
  EXPECT_EQ(complaint(peers), "");
  rank.fail(2, "no such option");
  EXPECT_EQ(complaint(peers), "") << "of an earlier program, and the command goes on";
  rank.begin();
  rank.pid.store(child);
  EXPECT_THAT(complaint(peers), testing::HasSubstr("died while")) << "in this world";
}

// As the launcher notes it: who never comes is not waited for.
TEST_F(PeersTest, ACommandThatEndsWithoutJoiningIsNotWaitedFor) {
  board_->ranks[0].worlds.store(1);
  Peers peers(board_, 0, 3);
  BoardRank& rank = board_->ranks[1];
  rank.finish(0);
  EXPECT_EQ(complaint(peers), "");
  rank.state.store(RankState::kFinished);
  rank.command_ended.store(1);
  EXPECT_THAT(complaint(peers), testing::HasSubstr("has finished while rank 0 waits for it"));
}

TEST_F(PeersTest, ACommandThatGoesOnWithItsNextProgramHasLeft) {
  BoardRank& rank = board_->ranks[1];
  rank.pid.store(getpid());
  for (const int each : {0, 1}) board_->ranks[each].worlds.store(1);
  rank.state.store(RankState::kRunning);
  Peers peers(board_, 0, 3);
  EXPECT_EQ(complaint(peers), "");
  rank.begin();
  EXPECT_THAT(complaint(peers), testing::HasSubstr("has left this program, and its command goes on with the next"));
}

TEST_F(PeersTest, AStoppedPeerIsToldFromABusyOne) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  board_->ranks[1].pid.store(child);
  board_->ranks[1].step.store(17);
  board_->ranks[1].doing.set("fold of b");
  const Peers peers(board_, 0, 3, {4, 5, 6});
  const std::string name = cat("rank 5 (pid ", child, ")");
  EXPECT_EQ(peers.describe(1), name + " is alive, at step 17, fold of b");
  board_->ranks[1].step.store(0);
  board_->ranks[1].doing.set("");
  EXPECT_THAT(peers.describe(1), testing::ContainsRegex("is alive, (asleep|computing)")) << "it counts no steps";
  kill(child, SIGSTOP);
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  EXPECT_EQ(peers.describe(1), cat(name, " is stopped (SIGSTOP; kill -CONT ", child, ")"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(peers.describe(1), name + " is dead");
  EXPECT_EQ(peers.describe(2), "rank 6 has not started");
}

TEST_F(PeersTest, OnlyWhoIsAwaitedCounts) {
  Peers peers(board_, 0, 3);
  board_->ranks[2].state.store(RankState::kFinished);
  EXPECT_NO_THROW(peers.check(std::vector<int>{1}, "a fold"));
}

TEST_F(PeersTest, AFinishedPeerWontCome) {
  Peers peers(board_, 0, 3);
  board_->ranks[1].state.store(RankState::kFinished);
  EXPECT_THAT(complaint(peers), testing::HasSubstr("rank 1 has finished while rank 0 waits"));
  EXPECT_THAT(complaint(peers), testing::HasSubstr("run the loop in ddp.join()"));
}

}  // namespace
}  // namespace lockstep::comm
