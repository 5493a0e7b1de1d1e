#include "lockstep/base/board.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep {
namespace {

TEST(Board, IsSeenByWhoeverMapsIt) {
  const auto fd = create_memfd("board", sizeof(Board));
  const Mapping here(fd.get()), there(fd.get());
  Board* board = Board::create(here.data(), 2);
  board->ranks[1].fail(65, "a.idx: damaged");
  const Board* seen = Board::attach(there.data());
  EXPECT_EQ(seen->local_ranks, 2);
  EXPECT_EQ(seen->ranks[1].state.load(), RankState::kFailed);
  EXPECT_EQ(seen->ranks[1].exit_code.load(), 65);
  EXPECT_EQ(seen->ranks[1].error.get(), "a.idx: damaged");
  EXPECT_EQ(seen->ranks[0].state.load(), RankState::kStarting);
}

TEST(Board, OtherMemoryIsRefused) {
  const auto fd = create_memfd("board", sizeof(Board));
  EXPECT_THROW(Board::attach(Mapping(fd.get()).data()), BugError);
}

TEST(Board, ABeatIsOnlyRaised) {
  BoardRank rank{};
  rank.raise_beat(5);
  rank.raise_beat(3);
  EXPECT_EQ(rank.beat_ns.load(), 5);
  rank.beat();
  EXPECT_GT(rank.beat_ns.load(), 5);
}

TEST(Board, TheClockDoesNotCountPauses) {
  const auto fd = create_memfd("board", sizeof(Board));
  const Mapping memory(fd.get());
  Board* board = Board::create(memory.data(), 1);
  const int64_t before = board->running_ns();
  board->paused_ns.store(3'600'000'000'000);
  EXPECT_LT(board->running_ns(), before);
}

TEST(BoardText, CutsLongLines) {
  BoardText<8> text{};
  text.set("twelve bytes");
  EXPECT_EQ(text.get(), "twel…");
  text.set("abcéfghi");
  EXPECT_EQ(text.get(), "abc…") << "no half a letter";
  text.set("seven b");
  EXPECT_EQ(text.get(), "seven b");
}

TEST(BoardText, ReadersNeverSeeHalfALine) {
  BoardText<64> text{};
  text.set(std::string(60, 'a'));
  std::thread writer([&] {
    for (int i = 0; i < 20000; ++i) text.set(std::string(60, i % 2 == 0 ? 'b' : 'a'));
  });
  for (int i = 0; i < 2000; ++i) {
    const std::string line = text.get();
    EXPECT_EQ(line, std::string(60, line.at(0)));
  }
  writer.join();
}

}  // namespace
}  // namespace lockstep
