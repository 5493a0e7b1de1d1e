#include "lockstep/data/permutation.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

std::vector<uint64_t> order(const Permutation& permutation) {
  std::vector<uint64_t> numbers;
  for (uint64_t position = 0; position < permutation.size(); ++position) numbers.push_back(permutation(position));
  return numbers;
}

TEST(Permutation, IsABijection) {
  for (const uint64_t n : {1, 2, 3, 4, 5, 7, 16, 17, 64, 65, 1000, 1024, 1025, 60000}) {
    std::vector<bool> seen(n);
    for (const uint64_t number : order(Permutation(n, 7, 3))) {
      ASSERT_LT(number, n);
      ASSERT_FALSE(seen[number]) << n;
      seen[number] = true;
    }
  }
}

TEST(Permutation, TakesLargeRanges) {
  for (const uint64_t n : {(uint64_t{1} << 40) + 1, uint64_t{1} << 62}) {
    const Permutation permutation(n, 1, 0);
    std::set<uint64_t> numbers;
    for (uint64_t i = 0; i < 1000; ++i) numbers.insert(permutation(n - 1 - i));
    EXPECT_EQ(numbers.size(), 1000u);
    EXPECT_LT(*numbers.rbegin(), n);
    EXPECT_GT(*numbers.rbegin(), n / 2);
  }
  EXPECT_THROW(Permutation((uint64_t{1} << 62) + 1, 1, 0), BugError);
}

TEST(Permutation, RefusesPositionsBeyondTheEnd) {
  EXPECT_THROW(Permutation(10, 1, 0)(10), BugError);
  EXPECT_THROW(Permutation(0, 1, 0)(0), BugError);
}

TEST(Permutation, DependsOnSeedEpochAndPurpose) {
  const auto first = order(Permutation(1000, 1, 0));
  EXPECT_EQ(first, order(Permutation(1000, 1, 0)));
  EXPECT_NE(first, order(Permutation(1000, 2, 0)));
  EXPECT_NE(first, order(Permutation(1000, uint64_t{1} << 32 | 1, 0)));
  EXPECT_NE(first, order(Permutation(1000, 1, 1)));
  EXPECT_NE(first, order(Permutation(1000, 1, 0, Purpose::kSplit)));
}

// A resumed run must see the order that it began with: these numbers may never change.
TEST(Permutation, IsPinned) {
  EXPECT_EQ(order(Permutation(10, 42, 1)), (std::vector<uint64_t>{0, 3, 6, 4, 2, 5, 7, 8, 1, 9}));
}

TEST(Permutation, ReachesAllOrdersAboutEquallyOften) {
  std::map<std::vector<uint64_t>, int> counts;
  for (uint64_t seed = 0; seed < 12000; ++seed) ++counts[order(Permutation(4, seed, 0))];
  EXPECT_EQ(counts.size(), 24u);  // 4!, 500 of each expected
  for (const auto& [numbers, count] : counts) {
    EXPECT_GT(count, 380) << numbers[0] << numbers[1] << numbers[2] << numbers[3];
    EXPECT_LT(count, 620) << numbers[0] << numbers[1] << numbers[2] << numbers[3];
  }
}

TEST(Permutation, SpreadsEveryPositionOverTheWholeRange) {
  constexpr uint64_t kSize = 1000;
  for (const uint64_t position : {0, 1, 499, 999}) {
    std::vector<int> counts(10);
    for (uint32_t epoch = 0; epoch < 5000; ++epoch) ++counts[Permutation(kSize, 9, epoch)(position) / 100];
    for (const int count : counts) EXPECT_NEAR(count, 500, 110) << position;
  }
}

TEST(Permutation, LeavesNeighboursUnrelated) {
  const auto numbers = order(Permutation(60000, 3, 0));
  double sum = 0;
  int adjacent = 0;
  for (size_t i = 0; i + 1 < numbers.size(); ++i) {
    const double difference = static_cast<double>(numbers[i + 1]) - static_cast<double>(numbers[i]);
    sum += std::abs(difference);
    adjacent += std::abs(difference) == 1;
  }
  EXPECT_NEAR(sum / 60000, 20000, 400);  // a third of the range
  EXPECT_LT(adjacent, 12);               // 2 expected
}

}  // namespace
}  // namespace lockstep::data
