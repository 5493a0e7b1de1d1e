// Every backend passes the conformance checks, for several numbers of ranks.
#include "lockstep/comm/communicator.h"

#include <gtest/gtest.h>

#include <memory>

#include "lockstep/base/board.h"
#include "lockstep/base/testing/long_test.h"
#include "lockstep/comm/shm/shm_communicator.h"
#include "lockstep/comm/single_communicator.h"
#include "lockstep/comm/testing/conformance.h"
#include "lockstep/world/testing/nodes.h"
#include "support/ranks.h"

namespace lockstep::comm {
namespace {

using testing_support::expect_ranks_pass;
using testing_support::RankContext;

TEST(Conformance, Single) {
  SingleCommunicator comm;
  testing::conformance(comm);
}

// A rank's pool and communicator. In the "mixed" world tensors of odd ranks lie elsewhere.
struct ShmRank {
  explicit ShmRank(RankContext& context)
      : board(context.memory.board.get()),
        pool(std::make_unique<Pool>(Descriptor(dup(context.memory.pools[static_cast<size_t>(context.rank)].get())))),
        comm({.rank = context.rank, .size = context.size}, context.memory, *pool, Board::attach(board.data())) {
    const bool inside = context.argument == "pool" || (context.argument == "mixed" && context.rank % 2 == 0);
    if (inside) Pool::install(std::unique_ptr<Pool>(pool.release()));  // it owns itself from then on
  }

  Mapping board;
  std::unique_ptr<Pool> pool;
  ShmCommunicator comm;
};

RANK_PROGRAM(shm) {
  ShmRank rank(context);
  ASSERT_EQ(rank.comm.size(), context.size);
  testing::conformance(rank.comm);
}

RANK_PROGRAM(shm_megabytes) {
  ShmRank rank(context);
  testing::check_megabytes(rank.comm, int64_t{64} << 20);
}

TEST(Conformance, ShmOnTensorsInThePool) {
  for (const int size : {2, 4}) expect_ranks_pass("shm", size, "pool");
}

TEST(Conformance, ShmOnTensorsInThePoolOfOtherWorlds) {
  LOCKSTEP_LONG_TEST_IF(true);
  for (const int size : {1, 3, 8}) expect_ranks_pass("shm", size, "pool");
}

TEST(Conformance, ShmOnTensorsElsewhere) {
  LOCKSTEP_LONG_TEST_IF(true);
  for (const int size : {1, 2, 3, 8}) expect_ranks_pass("shm", size, "elsewhere");
}

TEST(Conformance, ShmOnTensorsHereAndThere) {
  for (const int size : {2, 4}) expect_ranks_pass("shm", size, "mixed");
}

TEST(Conformance, ShmOn64Megabytes) {
  for (const char* where : {"pool", "elsewhere"}) expect_ranks_pass("shm_megabytes", 2, where);
}

RANK_PROGRAM(on_nodes) {
  const auto world = testing_support::init_on_nodes(context);
  auto& comm = world->communicator();
  testing::conformance(comm);
  testing::check_megabytes(comm, int64_t{4} << 20);
}

RANK_PROGRAM(megabytes_on_nodes) {
  const auto world = testing_support::init_on_nodes(context);
  testing::check_megabytes(world->communicator(), int64_t{64} << 20);
}

void expect_conformance(const char* backend, const std::vector<std::vector<int>>& worlds) {
  for (const auto& nodes : worlds) {
    expect_ranks_pass("on_nodes", testing_support::rank_count(nodes), testing_support::nodes(backend, nodes));
  }
}

TEST(Conformance, Gloo) { expect_conformance("gloo", {{3}, {2, 2}}); }

TEST(Conformance, GlooOfOtherWorlds) {
  LOCKSTEP_LONG_TEST_IF(true);
  expect_conformance("gloo", {{2}, {8}});
}

// Nodes that are subtrees of the world's tree, such that are not, and uneven ones.
TEST(Conformance, Hierarchical) { expect_conformance("hierarchical", {{2, 1}, {2, 2}, {1, 3}}); }

TEST(Conformance, HierarchicalOfOtherNodes) {
  LOCKSTEP_LONG_TEST_IF(true);
  expect_conformance("hierarchical", {{1, 1}, {3, 3}, {4, 4}});
}

TEST(Conformance, NetworksOn64Megabytes) {
  expect_ranks_pass("megabytes_on_nodes", 2, testing_support::nodes("gloo", {2}));
  expect_ranks_pass("megabytes_on_nodes", 4, testing_support::nodes("hierarchical", {2, 2}));
}

}  // namespace
}  // namespace lockstep::comm
