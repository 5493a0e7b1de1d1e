#include "lockstep/checkpoint/formats/memory_budget.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::checkpoint {
namespace {

TEST(MemoryBudget, ChargesUpToItsSize) {
  MemoryBudget budget(100);
  budget.charge(60);
  budget.charge(40);
  EXPECT_EQ(budget.left(), 0u);
  EXPECT_THROW(budget.charge(1), Fault);
}

TEST(MemoryBudget, ALargeChargeChangesNothing) {
  MemoryBudget budget(100);
  EXPECT_THROW(budget.charge(~uint64_t{0}), Fault);
  EXPECT_EQ(budget.left(), 100u);
}

TEST(MemoryBudget, AVectorIsChargedForItsItemsAndForWhatItLeavesBehind) {
  MemoryBudget budget(1 << 20);
  std::vector<uint64_t> numbers;
  for (uint64_t i = 0; i < 1000; ++i) budget.push(numbers, i);
  EXPECT_EQ(numbers.size(), 1000u);
  EXPECT_GE((1 << 20) - budget.left(), 2 * numbers.capacity() * sizeof(uint64_t) - 1024);
}

TEST(MemoryBudget, BlocksAreWhatMallocMakesOfThem) {
  EXPECT_EQ(block_bytes(0), 0u);
  EXPECT_EQ(block_bytes(1), 32u);
  EXPECT_EQ(block_bytes(24), 32u);
  EXPECT_EQ(block_bytes(25), 48u);
  EXPECT_EQ(text_bytes(15), 0u);
  EXPECT_EQ(text_bytes(16), 32u);
}

}  // namespace
}  // namespace lockstep::checkpoint
