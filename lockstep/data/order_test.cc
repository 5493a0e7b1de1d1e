#include "lockstep/data/order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/data/permutation.h"

namespace lockstep::data {
namespace {

std::vector<int64_t> epoch_of(const Order& order, uint32_t epoch) {
  std::vector<int64_t> samples;
  for (int64_t position = 0; position < order.size(); ++position) samples.push_back(order.at(epoch, position).index);
  return samples;
}

void expect_a_permutation(const Order& order, int64_t size) {
  ASSERT_EQ(order.size(), size);
  for (const uint32_t epoch : {0, 1, 7}) {
    std::set<int64_t> seen;
    for (int64_t position = 0; position < size; ++position) {
      const Pick pick = order.at(epoch, position);
      EXPECT_EQ(pick.number, static_cast<uint64_t>(pick.index));
      EXPECT_TRUE(pick.index >= 0 && pick.index < size && seen.insert(pick.index).second) << pick.index;
    }
  }
}

TEST(Order, EachSampleOnceAnEpoch) {
  for (const int64_t size : {1, 2, 7, 100}) {
    expect_a_permutation(*in_order(size), size);
    expect_a_permutation(*shuffled(size, 3), size);
    for (const int64_t block : {1, 3, 8, 100, 1000}) expect_a_permutation(*shuffled_in_blocks(size, block, 3), size);
  }
}

TEST(Order, AShuffledOneIsThePermutation) {
  const Permutation order(100, 3, 2);
  for (int64_t position = 0; position < 100; ++position) {
    EXPECT_EQ(shuffled(100, 3)->at(2, position).index, static_cast<int64_t>(order(static_cast<uint64_t>(position))));
  }
}

TEST(Order, DependsOnSeedAndEpoch) {
  for (const auto& [one, other] :
       {std::pair(shuffled(100, 3), shuffled(100, 4)),
        std::pair(shuffled_in_blocks(100, 8, 3), shuffled_in_blocks(100, 8, 4)),
        std::pair(weighted(std::vector<double>(100, 1), 50, 3), weighted(std::vector<double>(100, 1), 50, 4))}) {
    EXPECT_EQ(epoch_of(*one, 1), epoch_of(*one, 1));
    EXPECT_NE(epoch_of(*one, 1), epoch_of(*one, 2));
    EXPECT_NE(epoch_of(*one, 1), epoch_of(*other, 1));
  }
}

// All samples of a block follow each other; blocks, and the samples in them, are mixed.
TEST(Order, BlocksStayTogether) {
  const auto order = shuffled_in_blocks(103, 10, 1);
  std::vector<int64_t> blocks, places_of_rest;
  for (uint32_t epoch = 0; epoch < 30; ++epoch) {
    const auto samples = epoch_of(*order, epoch);
    std::vector<int64_t> seen;
    for (const int64_t sample : samples) {
      if (seen.empty() || seen.back() != sample / 10) seen.push_back(sample / 10);
    }
    EXPECT_EQ(seen.size(), 11u);
    places_of_rest.push_back(std::find(seen.begin(), seen.end(), 10) - seen.begin());
  }
  EXPECT_GT(std::set<int64_t>(places_of_rest.begin(), places_of_rest.end()).size(), 5u) << "the short block moves";
  std::set<std::vector<int64_t>> within;  // the orders in a block
  const auto samples = epoch_of(*shuffled_in_blocks(1000, 10, 1), 0);
  for (size_t first = 0; first < 1000; first += 10) {
    std::vector<int64_t> places;
    for (size_t i = 0; i < 10; ++i) places.push_back(samples[first + i] % 10);
    within.insert(places);
  }
  EXPECT_GT(within.size(), 90u);
}

TEST(Order, WeightsAreShares) {
  const auto order = weighted({1, 0, 3, 4}, 80000, 5);
  std::vector<double> counts(4);
  std::set<uint64_t> numbers;
  for (int64_t position = 0; position < order->size(); ++position) {
    const Pick pick = order->at(0, position);
    ++counts[static_cast<size_t>(pick.index)];
    numbers.insert(pick.number);
  }
  EXPECT_NEAR(counts[0], 10000, 400);
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[2], 30000, 600);
  EXPECT_NEAR(counts[3], 40000, 600);
  EXPECT_EQ(numbers.size(), 80000u) << "a sample that comes again is augmented otherwise";
}

TEST(Order, DrawsWithReplacementFromAllSamplesAlike) {
  const auto order = with_replacement(5, 50000, 7);
  std::vector<int64_t> counts(5);
  std::set<uint64_t> numbers;
  for (int64_t position = 0; position < order->size(); ++position) {
    const Pick pick = order->at(0, position);
    ++counts[static_cast<size_t>(pick.index)];
    numbers.insert(pick.number);
  }
  for (const int64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 10000, 400);
  EXPECT_EQ(numbers.size(), 50000u) << "a sample that comes again is augmented otherwise";
  EXPECT_EQ(order->at(0, 777), with_replacement(5, 800, 7)->at(0, 777)) << "O(1), whatever the number of draws";
  EXPECT_NE(epoch_of(*order, 0), epoch_of(*order, 1));
  EXPECT_NE(epoch_of(*order, 0), epoch_of(*with_replacement(5, 50000, 8), 0));
}

TEST(Order, SaysWhatItIs) {
  EXPECT_EQ(with_replacement(3, 5, 1)->text(), "with replacement");
  EXPECT_EQ(in_order(3)->text(), "in order");
  EXPECT_EQ(shuffled(3, 1)->text(), "shuffled");
  EXPECT_EQ(shuffled_in_blocks(3, 64, 1)->text(), "blocks of 64");
  EXPECT_NE(weighted({1, 2}, 3, 1)->text(), weighted({2, 1}, 3, 1)->text());
}

TEST(Order, RefusesWhatIsNoOrder) {
  EXPECT_THROW(shuffled_in_blocks(10, 0, 1), ConfigError);
  EXPECT_THROW(weighted({}, 3, 1), ConfigError);
  EXPECT_THROW(weighted({0, 0}, 3, 1), ConfigError);
  EXPECT_THROW(weighted({1, -1}, 3, 1), ConfigError);
  EXPECT_THROW(weighted({1, std::numeric_limits<double>::quiet_NaN()}, 3, 1), ConfigError);
  EXPECT_THROW(weighted({1}, 0, 1), ConfigError);
  EXPECT_THROW(with_replacement(3, 0, 1), ConfigError);
  EXPECT_THROW(with_replacement(0, 3, 1), ConfigError);
  EXPECT_THROW(with_replacement(int64_t{1} << 32, 3, 1), ConfigError);
}

}  // namespace
}  // namespace lockstep::data
