#include "lockstep/parallel/shard_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/comm/reduce.h"

namespace lockstep::parallel {
namespace {

using testing::ElementsAre;

constexpr int64_t kBlock = comm::kBlockElements;

TEST(ShardPlan, CutsTheRowOfBlocks) {
  // 1, 4, 1 and 2 blocks.
  const auto plan = plan_shards(std::vector<int64_t>{10, 3 * kBlock + 5, kBlock, kBlock + 1}, 2);
  EXPECT_THAT(plan, ElementsAre(ElementsAre(0, 10, 10), ElementsAre(0, 3 * kBlock, 3 * kBlock + 5),
                                ElementsAre(0, 0, kBlock), ElementsAre(0, 0, kBlock + 1)));
}

TEST(ShardPlan, ParametersMayHaveOwners) {
  const auto plan = plan_owners(std::vector<int64_t>{10, 3, 7}, std::vector<int>{0, 2, 1}, 3);
  EXPECT_THAT(plan, ElementsAre(ElementsAre(0, 10, 10, 10), ElementsAre(0, 0, 0, 3), ElementsAre(0, 0, 7, 7)));
}

TEST(ShardPlan, EveryElementIsOneRanks) {
  const std::vector<int64_t> elements = {1, 0, 100 * kBlock + 3, 17, 5 * kBlock, 64};
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const auto& bounds : plan_shards(elements, ranks)) {
      ASSERT_EQ(bounds.size(), static_cast<size_t>(ranks) + 1);
      EXPECT_EQ(bounds.front(), 0);
      for (size_t r = 0; r < bounds.size() - 1; ++r) {
        EXPECT_LE(bounds[r], bounds[r + 1]);
        EXPECT_TRUE(bounds[r] % kBlock == 0 || bounds[r] == bounds.back());
      }
    }
  }
}

TEST(ShardPlan, MoreRanksThanBlocksLeaveSomeWithNothing) {
  int64_t most = 0, all = 0;
  for (const auto& bounds : plan_shards(std::vector<int64_t>{100, 20}, 4)) {
    for (size_t r = 0; r < 4; ++r) {
      most = std::max(most, bounds[r + 1] - bounds[r]);
      all += bounds[r + 1] - bounds[r];
    }
  }
  EXPECT_EQ(most, 100);
  EXPECT_EQ(all, 120);
}

}  // namespace
}  // namespace lockstep::parallel
