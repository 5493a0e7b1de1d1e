#include "lockstep/comm/text_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lockstep/comm/shm/shm_communicator.h"
#include "lockstep/comm/single_communicator.h"
#include "support/ranks.h"

namespace lockstep::comm {
namespace {

using testing::ElementsAre;

TEST(GatherTexts, AloneIsOnesOwn) {
  SingleCommunicator comm;
  EXPECT_THAT(gather_texts(comm, "hello"), ElementsAre("hello"));
  EXPECT_THAT(gather_texts(comm, ""), ElementsAre(""));
  EXPECT_EQ(text_of_rank(comm, 0, "hello"), "hello");
}

RANK_PROGRAM(texts_of_all_lengths) {
  const Mapping board(context.memory.board.get());
  Pool pool(Descriptor(dup(context.memory.pools[static_cast<size_t>(context.rank)].get())));
  ShmCommunicator comm({.rank = context.rank, .size = context.size}, context.memory, pool, Board::attach(board.data()));
  const std::string with_nul("a\0b", 3);
  const auto texts = gather_texts(comm, context.rank == 0 ? "" : context.rank == 1 ? with_nul : std::string(5000, 'x'));
  EXPECT_THAT(texts, ElementsAre("", with_nul, std::string(5000, 'x')));
  EXPECT_THAT(gather_texts(comm, ""), ElementsAre("", "", ""));
  const std::string large(3 << 20, 'y');
  EXPECT_EQ(text_of_rank(comm, 0, context.rank == 0 ? large : with_nul), large);
  EXPECT_EQ(text_of_rank(comm, 0, context.rank == 0 ? "" : "mine"), "");
  EXPECT_EQ(text_of_rank(comm, 2, context.rank == 2 ? "the last's" : "mine"), "the last's");
  for (const int rank : {0, 2}) {
    EXPECT_TRUE(holds_on(comm, rank, context.rank == rank));
    EXPECT_FALSE(holds_on(comm, rank, context.rank != rank));
    EXPECT_FALSE(holds_on_all(comm, context.rank != rank));
  }
  EXPECT_TRUE(holds_on_all(comm, true));
}

TEST(GatherTexts, EveryRankGetsAllByRank) { testing_support::expect_ranks_pass("texts_of_all_lengths", 3); }

}  // namespace
}  // namespace lockstep::comm
