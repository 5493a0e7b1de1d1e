#include "lockstep/comm/shm/shm_source.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/comm/shm/testing/threads.h"

namespace lockstep::comm {
namespace {

TEST(ShmSource, ATensorElsewhereIsStagedInStripes) {
  testing::NodeOfThreads memory(1);
  ShmNode node(memory.node_options(0), memory.memory(), memory.pool(0), memory.board());
  const at::Tensor rows = at::randn({2, 300000});  // more than a piece
  ShmSource source(node, rows, 2);
  EXPECT_EQ(source.staged(), 0u);
  while (!source.complete()) {
    source.stage();
    const auto bytes = source.staged() * sizeof(float);
    for (int row = 0; row < 2; ++row) {
      const auto begin = source.offset() + static_cast<uint64_t>(row) * 300000 * sizeof(float);
      EXPECT_EQ(std::memcmp(node.at(0, begin), rows[row].const_data_ptr(), bytes), 0);
    }
  }
  EXPECT_EQ(source.staged(), 300000u);
}

TEST(ShmSource, ATensorInThePoolStaysWhereItIs) {
  testing::NodeOfThreads memory(1);
  ShmNode node(memory.node_options(0), memory.memory(), memory.pool(0), memory.board());
  const PoolBlock block = node.allocate(400);
  const at::Tensor inside = at::from_blob(block.as<float>(), {100});
  const ShmSource source(node, inside, 1);
  EXPECT_TRUE(source.complete());
  EXPECT_EQ(source.staged(), UINT64_MAX);
  EXPECT_EQ(source.offset(), block.offset);
}

}  // namespace
}  // namespace lockstep::comm
