#include "lockstep/parallel/shard_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/error.h"
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

TEST(ShardPlan, ServersKeepNearlyEqualParts) {
  const std::vector<int64_t> elements = {5, 100, 0, 60, 50, 0};
  EXPECT_THAT(plan_servers(elements, 1, 4), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(plan_servers(elements, 2, 4), ElementsAre(0, 0, 0, 2, 2, 0)) << "on every second rank";
  EXPECT_THAT(plan_servers(elements, 3, 3), ElementsAre(2, 0, 2, 1, 2, 2));
  EXPECT_THAT(plan_servers(std::vector<int64_t>{0, 0, 0}, 3, 3), ElementsAre(0, 1, 2)) << "one at least";
  EXPECT_THROW(plan_servers(elements, 5, 5), ConfigError) << "four are trained";
}

TEST(ShardPlan, AServerWithoutParametersIsRefused) {
  const auto refused = [](int servers, int ranks) {
    try {
      plan_servers(std::vector<int64_t>{10, 3}, servers, ranks);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused(3, 4),
              testing::HasSubstr("server 2 of 3 would keep nothing: the network has 2 trained parameters"));
  EXPECT_THAT(refused(2, 1), testing::HasSubstr("2 parameter servers on 1 rank: each is on a rank of its own"));
  EXPECT_EQ(refused(2, 2), "");
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
