#include "lockstep/comm/network/peer_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/base/clock.h"
#include "lockstep/base/node_memory.h"

namespace lockstep::comm {
namespace {

TEST(Heartbeat, IsReadAsItWasWritten) {
  const Heartbeat heartbeat{
      .count = 7, .stopped = {1, 12}, .doing = "waiting at fold of bucket 1/2 (w)", .age_ms = 123};
  const Heartbeat read = Heartbeat::decode(heartbeat.encode());
  EXPECT_EQ(read.count, 7u);
  EXPECT_EQ(read.stopped, (std::vector<int>{1, 12}));
  EXPECT_EQ(read.doing, heartbeat.doing);
  EXPECT_EQ(read.age_ms, 123);
  EXPECT_FALSE(read.finished || read.blocked);
  EXPECT_TRUE(Heartbeat::decode(Heartbeat{}.encode()).stopped.empty());
  const Heartbeat blocked{.count = 8, .finished = true, .blocked = BlockedCall{.what = "barrier #3", .needs = "world"}};
  const Heartbeat again = Heartbeat::decode(blocked.encode());
  EXPECT_TRUE(again.finished);
  ASSERT_TRUE(again.blocked);
  EXPECT_EQ(again.blocked->what, "barrier #3");
  EXPECT_EQ(again.age_ms, -1);
  EXPECT_EQ(Heartbeat::decode("rubbish").count, 0u);
}

// Ranks 1 and 2 share a node: 1 tells of 2.
TEST(PeerStates, ANeighbourTellsOfAStoppedRank) {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  const NodeMemory memory = NodeMemory::create(2);
  const Mapping mapping(memory.board.get());
  Board* board = Board::attach(mapping.data());
  board->ranks[0].pid.store(getpid());
  board->ranks[0].step.store(12);
  board->ranks[1].pid.store(child);

  const RankTable table{{0, 0, "a"}, {1, 0, "b"}, {1, 1, "b"}};
  const auto store = c10::make_intrusive<c10d::HashStore>();
  for (const int rank : {0, 1, 2}) Bulletin(store, rank).announce();
  Bulletin(store, 1).heartbeat(PeerStates(table, 1, board).own_heartbeat());
  Bulletin bulletin(store, 0);
  PeerStates states(table, 0, nullptr);
  EXPECT_EQ(states.describe(2), "has not been heard of");
  states.read_heartbeats(bulletin, {2});
  EXPECT_THAT(states.describe(2), ::testing::HasSubstr("is stopped (SIGSTOP"));
  EXPECT_EQ(states.describe(1), "is alive, at step 12");
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
}

// Rank 1 on another node tells its progress, and rank 2 tells none.
TEST(PeerStates, KnowsSinceWhenARankHasMadeNoProgress) {
  const NodeMemory memory = NodeMemory::create(1), other = NodeMemory::create(2);
  const Mapping mapping(memory.board.get()), other_mapping(other.board.get());
  Board *board = Board::attach(mapping.data()), *other_board = Board::attach(other_mapping.data());
  const RankTable table{{0, 0, "a"}, {1, 0, "b"}, {1, 1, "b"}};
  const auto store = c10::make_intrusive<c10d::HashStore>();
  for (const int rank : {0, 1, 2}) Bulletin(store, rank).announce();
  PeerStates states(table, 0, board), one(table, 1, other_board);
  Bulletin bulletin(store, 0);
  const auto round = [&] {
    states.own_heartbeat();
    Bulletin(store, 1).heartbeat(one.own_heartbeat());
    states.read_heartbeats(bulletin, {1});
    return states.progress_of({1});
  };
  const int64_t before = monotonic_ns();
  other_board->ranks[0].beat_ns.store(before);
  EXPECT_EQ(states.progress_of({1}), 0);
  EXPECT_EQ(round(), 0) << "how old the first heartbeat is can't be known";
  const int64_t first = round();
  EXPECT_GT(first, 0);
  EXPECT_LE(first, before);
  for (int i = 0; i < 100; ++i) EXPECT_LE(round(), before) << "it never gets younger";
  other_board->ranks[0].beat_ns.store(monotonic_ns());
  EXPECT_GT(round(), first);
  EXPECT_EQ(states.progress_of({1, 2}), 0) << "rank 2 makes none";
  EXPECT_EQ(states.progress_of({}), 0);
  board->paused_ns.store(1'000'000'000'000);
  EXPECT_LT(states.running_ns(), before);

  states.pass_on(before - 1'000'000'000'000);
  EXPECT_NEAR(static_cast<double>(board->ranks[0].beat_ns.load() - before), 0, 1e9);
  const int64_t passed = board->ranks[0].beat_ns.load();
  states.pass_on(0);
  EXPECT_EQ(board->ranks[0].beat_ns.load(), passed);
}

}  // namespace
}  // namespace lockstep::comm
