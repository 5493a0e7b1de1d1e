#include "lockstep/comm/blocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::comm {
namespace {

TEST(Blocks, SlicesCoverEveryElementOnce) {
  const std::vector<int64_t> sizes = {0, 1, 4096, 4097, 100000, 3, 0, 12288};
  const int64_t blocks = block_count(sizes);
  EXPECT_EQ(blocks, 0 + 1 + 1 + 2 + 25 + 1 + 0 + 3);
  for (const int ranks : {1, 2, 3, 7, 64}) {
    std::vector<std::vector<int>> seen;
    for (const int64_t size : sizes) seen.emplace_back(static_cast<size_t>(size), 0);
    int64_t next_block = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      for_each_block(sizes, slice_of(blocks, rank, ranks), [&](size_t tensor, int64_t first, int64_t n, int64_t block) {
        EXPECT_EQ(block, next_block++);
        EXPECT_EQ(first % kBlockElements, 0);
        for (int64_t i = first; i < first + n; ++i) ++seen[tensor].at(static_cast<size_t>(i));
      });
    }
    EXPECT_EQ(next_block, blocks);
    for (const auto& tensor : seen) {
      for (const int times : tensor) ASSERT_EQ(times, 1);
    }
  }
}

}  // namespace
}  // namespace lockstep::comm
