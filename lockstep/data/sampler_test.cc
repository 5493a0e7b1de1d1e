#include "lockstep/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep::data {
namespace {

std::vector<int64_t> global_batch(const LaneSampler& sampler, uint32_t epoch, int64_t step) {
  std::vector<int64_t> samples;
  for (int lane = 0; lane < sampler.options().lanes; ++lane) {
    const auto part = sampler.lane(epoch, step, lane);
    samples.insert(samples.end(), part.begin(), part.end());
  }
  return samples;
}

std::vector<int64_t> whole_epoch(const LaneSampler& sampler, uint32_t epoch) {
  std::vector<int64_t> samples;
  for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    const auto part = global_batch(sampler, epoch, step);
    EXPECT_EQ(static_cast<int64_t>(part.size()), sampler.global_batch_samples(step));
    samples.insert(samples.end(), part.begin(), part.end());
  }
  return samples;
}

TEST(LaneRange, DividesAsEvenlyAsCanBe) {
  for (int lanes = 1; lanes <= 9; ++lanes) {
    for (int64_t samples = 0; samples <= 40; ++samples) {
      int64_t next = 0;
      for (int lane = 0; lane < lanes; ++lane) {
        const Range range = lane_range(samples, lanes, lane);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.count, samples / lanes);
        EXPECT_LE(range.count, (samples + lanes - 1) / lanes);
        next += range.count;
      }
      EXPECT_EQ(next, samples);
    }
  }
  EXPECT_EQ(lane_range(3, 8, 2), (Range{2, 1}));
  EXPECT_EQ(lane_range(3, 8, 7), (Range{3, 0}));
}

TEST(LaneSampler, VisitsEverySampleOncePerEpoch) {
  for (const int lanes : {1, 2, 8}) {
    for (const int64_t size : {1, 5, 16, 17, 100}) {
      const LaneSampler sampler({.dataset_size = size, .lanes = lanes, .batch_size = 2, .seed = 5});
      for (const uint32_t epoch : {0, 1}) {
        auto samples = whole_epoch(sampler, epoch);
        std::sort(samples.begin(), samples.end());
        std::vector<int64_t> all(static_cast<size_t>(size));
        std::iota(all.begin(), all.end(), 0);
        EXPECT_EQ(samples, all) << lanes << " lanes, " << size;
      }
    }
  }
}

TEST(LaneSampler, KeepsTheRaggedLastBatch) {
  const LaneSampler sampler({.dataset_size = 100, .lanes = 4, .batch_size = 8, .seed = 5});
  EXPECT_EQ(sampler.steps_per_epoch(), 4);
  EXPECT_EQ(sampler.global_batch_samples(2), 32);
  EXPECT_EQ(sampler.global_batch_samples(3), 4);
  EXPECT_EQ(LaneSampler({.dataset_size = 96, .lanes = 4, .batch_size = 8}).steps_per_epoch(), 3);
  const LaneSampler small({.dataset_size = 3, .lanes = 4, .batch_size = 8});
  EXPECT_EQ(small.lane(0, 0, 2).size(), 1u);
  EXPECT_TRUE(small.lane(0, 0, 3).empty());
}

TEST(LaneSampler, LeavesTheRaggedLastBatchOutWhereToldTo) {
  const LaneSampler sampler({.dataset_size = 100, .lanes = 4, .batch_size = 8, .seed = 5, .drop_last = true});
  const LaneSampler whole({.dataset_size = 100, .lanes = 4, .batch_size = 8, .seed = 5});
  EXPECT_EQ(sampler.steps_per_epoch(), 3);
  EXPECT_EQ(sampler.global_batch_samples(2), 32);
  EXPECT_EQ(global_batch(sampler, 1, 2), global_batch(whole, 1, 2));
  EXPECT_EQ(LaneSampler({.dataset_size = 96, .lanes = 4, .batch_size = 8, .drop_last = true}).steps_per_epoch(), 3);
  const auto left = [](int64_t size) {
    return LaneSampler({.dataset_size = size, .lanes = 4, .batch_size = 8, .drop_last = true}).steps_per_epoch();
  };
  EXPECT_EQ(left(32), 1);
  EXPECT_EQ(testing_support::refusal([&] { left(31); }),
            "drop_last: the 31 samples are fewer than a global batch of 4 × 8, so no step is left; use smaller "
            "batches");
}

TEST(LaneSampler, GivesTheSameGlobalBatchForAnyNumberOfLanes) {
  const LaneSampler one({.dataset_size = 100, .lanes = 1, .batch_size = 16, .seed = 5});
  const LaneSampler four({.dataset_size = 100, .lanes = 4, .batch_size = 4, .seed = 5});
  for (int64_t step = 0; step < one.steps_per_epoch(); ++step) {
    EXPECT_EQ(global_batch(one, 2, step), global_batch(four, 2, step));
  }
}

TEST(LaneSampler, ShufflesByEpochAndSeed) {
  const LaneSampler sampler({.dataset_size = 100, .batch_size = 10, .seed = 5});
  EXPECT_NE(whole_epoch(sampler, 0), whole_epoch(sampler, 1));
  EXPECT_NE(whole_epoch(sampler, 0), whole_epoch(LaneSampler({.dataset_size = 100, .batch_size = 10, .seed = 6}), 0));
}

TEST(LaneSampler, KeepsTheOrderOfTheDataWithoutShuffling) {
  const LaneSampler sampler({.dataset_size = 10, .lanes = 2, .batch_size = 2, .shuffle = false});
  EXPECT_EQ(sampler.lane(0, 1, 1), (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(sampler.lane(9, 2, 0), (std::vector<int64_t>{8}));
  EXPECT_EQ(sampler.lane(9, 2, 1), (std::vector<int64_t>{9}));
}

TEST(LaneSampler, ChecksItsOptions) {
  EXPECT_THROW(LaneSampler({.dataset_size = 10, .lanes = 0}), ConfigError);
  EXPECT_THROW(LaneSampler({.dataset_size = 10, .batch_size = 0}), ConfigError);
  EXPECT_THROW(LaneSampler({.dataset_size = 10, .lanes = 1 << 20, .batch_size = int64_t{1} << 60}), ConfigError);
  EXPECT_THROW(LaneSampler({.dataset_size = 0}), DataError);
  const LaneSampler sampler({.dataset_size = 10, .lanes = 2});
  EXPECT_THROW(sampler.lane(0, 5, 0), BugError);
  EXPECT_THROW(sampler.lane(0, -1, 0), BugError);
  EXPECT_THROW(sampler.lane(0, 0, 2), BugError);
}

TEST(LaneSampler, AFingerprintTellsOneStepFromOthers) {
  const SamplerOptions options{.dataset_size = 100, .lanes = 2, .batch_size = 5, .seed = 1};
  const uint64_t one = LaneSampler(options).fingerprint(0, 3);
  EXPECT_EQ(LaneSampler(options).fingerprint(0, 3), one);
  EXPECT_NE(LaneSampler(options).fingerprint(0, 4), one);
  EXPECT_NE(LaneSampler(options).fingerprint(1, 3), one);
  SamplerOptions seed = options, size = options, order = options;
  seed.seed = 2;
  size.dataset_size = 101;
  order.shuffle = false;
  for (const SamplerOptions& other : {seed, size, order}) EXPECT_NE(LaneSampler(other).fingerprint(0, 3), one);
}

// Eight draws an epoch of three samples.
TEST(LaneSampler, GoesByAnOrderThatIsGiven) {
  const auto order = weighted({1, 2, 1}, 8, 4);
  const LaneSampler sampler({.dataset_size = 3, .lanes = 2, .batch_size = 3, .order = order});
  EXPECT_EQ(sampler.steps_per_epoch(), 2);
  EXPECT_EQ(sampler.global_batch_samples(1), 2);
  int64_t position = 0;
  for (int64_t step = 0; step < 2; ++step) {
    for (const int lane : {0, 1}) {
      for (const Pick& pick : sampler.picks(5, step, lane)) EXPECT_EQ(pick, order->at(5, position++));
    }
  }
  EXPECT_EQ(position, 8);
}

}  // namespace
}  // namespace lockstep::data
