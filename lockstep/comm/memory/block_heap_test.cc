#include "lockstep/comm/memory/block_heap.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace lockstep::comm {
namespace {

using Block = BlockHeap::Block;

TEST(BlockHeap, BlocksAreAlignedAndApart) {
  BlockHeap heap(1 << 20);
  Block* a = heap.allocate(1);
  Block* b = heap.allocate(65);
  EXPECT_EQ(a->size, 64u);
  EXPECT_EQ(b->size, 128u);
  EXPECT_EQ(b->offset % BlockHeap::kAlignment, 0u);
  EXPECT_GE(b->offset, a->offset + a->size);
}

TEST(BlockHeap, AFreedBlockComesBackFirst) {
  BlockHeap heap(1 << 20);
  Block* a = heap.allocate(1000);
  Block* between = heap.allocate(64);
  const size_t offset = a->offset;
  a->backed = true;
  heap.release(a);
  EXPECT_EQ(heap.allocate(1000)->offset, offset);
  heap.release(between);
}

TEST(BlockHeap, NeighboursMerge) {
  BlockHeap heap(1 << 12);
  Block* a = heap.allocate(1 << 11);
  Block* b = heap.allocate(1 << 11);
  EXPECT_EQ(heap.allocate(64), nullptr);
  heap.release(a);
  heap.release(b);
  EXPECT_NE(heap.allocate(1 << 12), nullptr);
}

TEST(BlockHeap, BackedAndUnbackedStayApart) {
  BlockHeap heap(1 << 12);
  Block* a = heap.allocate(1 << 11);
  a->backed = true;
  heap.release(a);
  EXPECT_EQ(heap.free_backed(1).size(), 1u);
  EXPECT_EQ(heap.allocate(1 << 12), nullptr);
  EXPECT_TRUE(heap.allocate(1 << 11)->backed);
}

TEST(BlockHeap, BackedBlocksGoFirst) {
  BlockHeap heap(1 << 16);
  Block* a = heap.allocate(1 << 12);
  Block* between = heap.allocate(64);
  Block* b = heap.allocate(1 << 12);
  a->backed = true;
  heap.release(a);
  heap.release(b);  // freed later, of the same size, but without memory
  EXPECT_EQ(heap.allocate(1 << 12), a);
  heap.release(between);
}

TEST(BlockHeap, TooMuchIsNull) {
  BlockHeap heap(1 << 12);
  EXPECT_EQ(heap.allocate((1 << 12) + 1), nullptr);
  EXPECT_EQ(heap.allocate(SIZE_MAX), nullptr);
}

// Random allocations and releases against a map of what is taken: nothing overlaps, and all of it comes back.
TEST(BlockHeap, RandomUseNeverOverlaps) {
  const size_t capacity = 1 << 22;
  BlockHeap heap(capacity);
  std::mt19937 random(1);
  std::map<size_t, Block*> taken;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 5 < 3) {
      Block* block = heap.allocate(1 + random() % (1 << (4 + random() % 13)));
      if (block == nullptr) continue;
      const auto after = taken.upper_bound(block->offset);
      if (after != taken.end()) ASSERT_LE(block->offset + block->size, after->first);
      if (after != taken.begin()) {
        const Block* before = std::prev(after)->second;
        ASSERT_LE(before->offset + before->size, block->offset);
      }
      ASSERT_LE(block->offset + block->size, capacity);
      taken[block->offset] = block;
    } else if (!taken.empty()) {
      const auto victim = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
      heap.release(victim->second);
      taken.erase(victim);
    }
  }
  for (const auto& [offset, block] : taken) heap.release(block);
  EXPECT_NE(heap.allocate(capacity), nullptr);
}

}  // namespace
}  // namespace lockstep::comm
