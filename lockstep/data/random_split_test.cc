#include "lockstep/data/random_split.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/data/subset.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

TEST(RandomSplit, PartsAllSamples) {
  const auto parts = random_split(101, {50, 30, 20}, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].size(), 51u) << "50, and the one that is left";
  EXPECT_EQ(parts[1].size(), 30u);
  EXPECT_EQ(parts[2].size(), 20u);
  std::set<int64_t> all;
  for (const auto& part : parts) {
    EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
    all.insert(part.begin(), part.end());
  }
  EXPECT_EQ(all.size(), 101u);
  EXPECT_EQ(*all.rbegin(), 100);
  EXPECT_EQ(random_split(101, {50, 30, 20}, 3), parts);
  EXPECT_NE(random_split(101, {50, 30, 20}, 4), parts);
}

TEST(RandomSplit, MayLeaveSamplesOut) {
  const auto parts = random_split(10, {25, 25}, 1);
  EXPECT_EQ(parts[0].size(), 2u);
  EXPECT_EQ(parts[1].size(), 2u);
  EXPECT_EQ(random_split(100, {10}, 1)[0], hold_out(TensorDataset(at::arange(100)), 10, 1).validation)
      << "as --validation holds out";
}

TEST(RandomSplit, IsTheSameByCounts) {
  EXPECT_EQ(split_by_counts(101, {51, 30, 20}, 3), random_split(101, {50, 30, 20}, 3));
  EXPECT_EQ(split_by_counts(5, {0, 5}, 3)[1], (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_THROW(split_by_counts(5, {3, 3}, 3), ConfigError);
  EXPECT_THROW(split_by_counts(5, {-1}, 3), ConfigError);
}

TEST(RandomSplit, RefusesSharesThatAreNone) {
  EXPECT_THROW(random_split(10, {60, 50}, 1), ConfigError);
  EXPECT_THROW(random_split(10, {-1}, 1), ConfigError);
  EXPECT_THROW(random_split(10, {std::numeric_limits<double>::quiet_NaN()}, 1), ConfigError);
}

}  // namespace
}  // namespace lockstep::data
