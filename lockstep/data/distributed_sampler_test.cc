#include "lockstep/data/distributed_sampler.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> of(int64_t size, int ranks, int rank, DistributedSamplerOptions options) {
  const DistributedSampler sampler(size, ranks, rank, options);
  const auto indices = sampler.indices();
  EXPECT_EQ(sampler.size(), std::ssize(indices));
  return indices;
}

TEST(DistributedSampler, DealsPlacesByTurns) {
  EXPECT_THAT(of(8, 4, 1, {.shuffle = false}), ElementsAre(1, 5));
  EXPECT_THAT(of(10, 4, 0, {.shuffle = false}), ElementsAre(0, 4, 8));
  EXPECT_THAT(of(10, 4, 3, {.shuffle = false}), ElementsAre(3, 7, 1)) << "padded by the first ones";
  EXPECT_THAT(of(3, 8, 7, {.shuffle = false}), ElementsAre(1)) << "again and again";
  EXPECT_THAT(of(10, 4, 3, {.shuffle = false, .drop_last = true}), ElementsAre(3, 7));
  EXPECT_THAT(of(10, 4, 0, {.shuffle = false, .drop_last = true}), ElementsAre(0, 4));
  EXPECT_THAT(of(10, 4, 1, {.shuffle = false, .pad = false}), ElementsAre(1, 5, 9));
  EXPECT_THAT(of(10, 4, 3, {.shuffle = false, .pad = false}), ElementsAre(3, 7));
  EXPECT_THAT(of(0, 4, 3, {}), IsEmpty());
}

// By definition: torch.randperm(n, generator of seed + epoch)[rank::ranks].
TEST(DistributedSampler, ShufflesAsPyTorchDoes) {
  DistributedSampler sampler(100, 4, 2, {.seed = 5});
  sampler.set_epoch(3);
  at::Generator generator = at::detail::createCPUGenerator(8);
  const at::Tensor order = at::randperm(100, generator, at::TensorOptions(at::kLong));
  const at::Tensor own = order.slice(0, 2, 100, 4).contiguous();
  EXPECT_TRUE(at::equal(at::tensor(sampler.indices(), at::kLong), own));
}

TEST(DistributedSampler, EveryEpochHasAnOrderOfItsOwnOverAllRanks) {
  std::vector<int64_t> all, later;
  for (int rank = 0; rank < 4; ++rank) {
    DistributedSampler sampler(100, 4, rank);
    for (const int64_t index : sampler.indices()) all.push_back(index);
    sampler.set_epoch(1);
    for (const int64_t index : sampler.indices()) later.push_back(index);
  }
  EXPECT_NE(all, later);
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], i);
}

TEST(DistributedSampler, RefusesARankThatIsNone) {
  EXPECT_THROW(DistributedSampler(10, 4, 4), ConfigError);
  EXPECT_THROW(DistributedSampler(10, 4, -1), ConfigError);
  EXPECT_THROW(DistributedSampler(10, 0, 0), ConfigError);
  EXPECT_THROW(DistributedSampler(-1, 1, 0), ConfigError);
}

}  // namespace
}  // namespace lockstep::data
