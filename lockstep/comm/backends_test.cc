#include "lockstep/comm/backends.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

TEST(Backends, AWorldOfOneNeedsNoNetwork) {
  for (const char* backend : {"single", "shm"}) EXPECT_FALSE(needs_network(backend));
  for (const char* backend : {"gloo", "hierarchical", "mpi", "nccl"}) EXPECT_TRUE(needs_network(backend));
}

TEST(Backends, AlgorithmsAndMissingOnes) {
  const NodeMemory memory = NodeMemory::create(1);
  const Mapping board(memory.board.get());
  Pool pool(Descriptor(dup(memory.pools[0].get())));
  const Place place;
  const RankParts parts{place, memory, pool, Board::attach(board.data()), nullptr};
  EXPECT_TRUE(make_communicator(parts, {.backend = "single"})->same_bits());
  EXPECT_FALSE(make_communicator(parts, {.backend = "single", .algorithm = "ring"})->same_bits());
  EXPECT_THROW(make_communicator(parts, {.backend = "single", .algorithm = "tree"}), ConfigError);
}

}  // namespace
}  // namespace lockstep::comm
