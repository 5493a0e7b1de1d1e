#include "lockstep/checkpoint/formats/pickle_memo.h"

#include <gtest/gtest.h>

namespace lockstep::checkpoint {
namespace {

int64_t at(const PickleMemo& memo, uint64_t key) {
  const Item* item = memo.find(key);
  return item == nullptr ? -1 : std::get<int64_t>(*item);
}

TEST(PickleMemo, KeepsWhatWasPutLast) {
  MemoryBudget budget(1 << 20);
  PickleMemo memo(budget);
  for (const uint64_t key : {uint64_t{0}, uint64_t{1}, uint64_t{5}, uint64_t{4'000'000'000}, ~uint64_t{0}}) {
    memo.put(key, static_cast<int64_t>(key % 1000));
    EXPECT_EQ(at(memo, key), static_cast<int64_t>(key % 1000));
    memo.put(key, int64_t{7});
    EXPECT_EQ(at(memo, key), 7);
  }
  EXPECT_EQ(at(memo, 3), -1);
  EXPECT_EQ(at(memo, 6), -1);
}

TEST(PickleMemo, TheNextNumberIsTheNumberOfItems) {
  MemoryBudget budget(1 << 20);
  PickleMemo memo(budget);
  memo.put(0, int64_t{10});
  memo.put(0, int64_t{11});
  memo.put(1'000'000, int64_t{12});
  memo.put_next(int64_t{13});
  EXPECT_EQ(at(memo, 2), 13);
}

// A number that was far away when it was put, and is near afterwards.
TEST(PickleMemo, NumbersThatTheVectorReachesStayWhatTheyWere) {
  MemoryBudget budget(1 << 20);
  PickleMemo memo(budget);
  memo.put(100, int64_t{1});
  for (uint64_t key = 0; key < 200; key += 2) {
    if (key != 100) memo.put(key, int64_t{2});
  }
  EXPECT_EQ(at(memo, 100), 1);
  memo.put(100, int64_t{3});
  EXPECT_EQ(at(memo, 100), 3);
}

TEST(PickleMemo, MemoryIsBounded) {
  for (const uint64_t stride : {1u, 17u, 1'000'003u}) {
    MemoryBudget budget(1 << 20);
    PickleMemo memo(budget);
    EXPECT_THROW(
        {
          for (uint64_t key = 0; key < (1u << 20); ++key) memo.put(key * stride, Item());
        },
        Fault)
        << stride;
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
