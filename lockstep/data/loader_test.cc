#include "lockstep/data/loader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>

#include "lockstep/base/error.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

// Sample i is the number i (+ 1000 · epoch); sample `bad` is damaged.
class Numbers final : public Dataset {
 public:
  explicit Numbers(int64_t size, int64_t bad = -1) : size_(size), bad_(bad) {}
  int64_t size() const override { return size_; }
  std::vector<Field> fields() const override {
    return {{.name = "data", .dtype = at::kFloat, .shape = {1}}, {.name = "target", .dtype = at::kLong, .shape = {}}};
  }
  void read(int64_t index, const Draw& draw, std::span<at::Tensor> rows, ReadStats&) const override {
    check_index(index, size_);
    if (index == bad_) throw DataError("sample ", bad_, " is damaged");
    rows[0].fill_(index);
    rows[1].fill_(static_cast<int64_t>(draw.number) + 1000 * draw.epoch);
  }
  std::string fingerprint() const override { return "numbers"; }
  int64_t classes() const override { return size_; }
  std::string description() const override { return "numbers"; }

 private:
  int64_t size_;
  int64_t bad_;
};

// Numbers whose sample 20 can't be read the first time.
class OnceDamaged final : public Dataset {
 public:
  int64_t size() const override { return sound_.size(); }
  std::vector<Field> fields() const override { return sound_.fields(); }
  void read(int64_t index, const Draw& draw, std::span<at::Tensor> rows, ReadStats& stats) const override {
    (index == 20 && !failed_.exchange(true) ? damaged_ : sound_).read(index, draw, rows, stats);
  }
  std::string fingerprint() const override { return sound_.fingerprint(); }
  int64_t classes() const override { return sound_.classes(); }
  std::string description() const override { return sound_.description(); }

 private:
  Numbers sound_{50}, damaged_{50, 20};
  mutable std::atomic<bool> failed_ = false;
};

LaneSampler sampler(int64_t size, bool shuffle = true) {
  return LaneSampler({.dataset_size = size, .lanes = 4, .batch_size = 3, .seed = 8, .shuffle = shuffle});
}

std::vector<int64_t> targets(const Batch& batch) {
  const auto* first = batch.target().const_data_ptr<int64_t>();
  return {first, first + batch.size()};
}

class LoaderTest : public ::testing::TestWithParam<int> {
 protected:
  LoaderOptions options(int first, int last) const {
    return {.first_lane = first, .last_lane = last, .workers = GetParam()};
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, LoaderTest, ::testing::Values(0, 1, 3));

TEST_P(LoaderTest, YieldsItsLanesStepAfterStep) {
  const LaneSampler order = sampler(50);
  Loader loader(std::make_shared<Numbers>(50), order, options(1, 3));
  for (const uint32_t epoch : {0, 1}) {
    for (int64_t step = 0; step < 5; ++step) {
      EXPECT_EQ(loader.position(), (Position{epoch, step}));
      const StepBatch batch = loader.next();
      EXPECT_EQ(batch.position, (Position{epoch, step}));
      EXPECT_EQ(batch.global_samples, step == 4 ? 2 : 12);
      ASSERT_EQ(batch.lanes.size(), 2u);
      for (const LaneBatch& lane : batch.lanes) {
        auto expected = order.lane(epoch, step, lane.lane);
        for (auto& sample : expected) sample += 1000 * epoch;
        EXPECT_EQ(targets(lane), expected);
        EXPECT_EQ(lane.data().size(0), lane.size());
      }
      EXPECT_EQ(batch.lanes[0].lane, 1);
      EXPECT_EQ(batch.lanes[1].lane, 2);
      EXPECT_EQ(batch.lanes[1].size(), step == 4 ? 0 : 3);  // two samples are left for four lanes
    }
  }
}

TEST_P(LoaderTest, StartsAndSeeksAnywhere) {
  Loader loader(std::make_shared<Numbers>(50), sampler(50), options(0, 4), {.epoch = 3, .step = 4});
  EXPECT_EQ(loader.next().position, (Position{3, 4}));
  EXPECT_EQ(loader.next().position, (Position{4, 0}));
  loader.seek({.epoch = 1, .step = 2});
  const StepBatch batch = loader.next();
  EXPECT_EQ(batch.position, (Position{1, 2}));
  EXPECT_EQ(targets(batch.lanes[3])[0], sampler(50).lane(1, 2, 3)[0] + 1000);
  EXPECT_THROW(loader.seek({.epoch = 0, .step = 5}), BugError);
  EXPECT_EQ(loader.next().position, (Position{1, 3}));
}

TEST_P(LoaderTest, ThrowsAtTheDamagedStepAndStaysThere) {
  Loader loader(std::make_shared<Numbers>(50, 20), sampler(50, false), options(0, 4));
  loader.next();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(loader.next(), DataError);
    EXPECT_EQ(loader.position(), (Position{0, 1}));
  }
  loader.seek({.epoch = 0, .step = 2});
  EXPECT_EQ(targets(loader.next().lanes[0]), (std::vector<int64_t>{24, 25, 26}));
}

TEST_P(LoaderTest, AStepThatFailedOnceIsWholeTheNextTime) {
  Loader loader(std::make_shared<OnceDamaged>(), sampler(50, false), options(0, 4));
  loader.next();
  EXPECT_THROW(loader.next(), DataError) << "in lane 2";
  const StepBatch batch = loader.next();
  EXPECT_EQ(batch.position, (Position{0, 1}));
  for (size_t lane = 0; lane < 4; ++lane) {
    EXPECT_EQ(targets(batch.lanes[lane])[0], 12 + 3 * static_cast<int64_t>(lane));
  }
}

TEST(Loader, GivesTheSameBitsForAnyNumberOfWorkers) {
  const auto images = std::make_shared<TensorDataset>(at::rand({100, 1, 28, 28}), at::arange(100));
  Loader alone(images, sampler(100), {.last_lane = 4});
  Loader helped(images, sampler(100), {.last_lane = 4, .workers = 3, .prefetch = 2});
  for (int step = 0; step < 20; ++step) {
    const StepBatch a = alone.next();
    const StepBatch b = helped.next();
    ASSERT_EQ(a.lanes.size(), b.lanes.size());
    for (size_t i = 0; i < a.lanes.size(); ++i) {
      EXPECT_TRUE(at::equal(a.lanes[i].data(), b.lanes[i].data()));
      EXPECT_TRUE(at::equal(a.lanes[i].target(), b.lanes[i].target()));
    }
  }
}

TEST(Loader, ChecksItsOptions) {
  const auto numbers = std::make_shared<Numbers>(50);
  EXPECT_THROW(Loader(numbers, sampler(50), {.workers = -1}), ConfigError);
  EXPECT_THROW(Loader(numbers, sampler(50), {.workers = 100000}), ConfigError);
  EXPECT_THROW(Loader(numbers, sampler(50), {.prefetch = 0}), ConfigError);
  EXPECT_THROW(Loader(numbers, sampler(50), {.first_lane = 2, .last_lane = 5}), BugError);
  EXPECT_THROW(Loader(numbers, sampler(50), {.first_lane = 2, .last_lane = 2}), BugError);
  EXPECT_THROW(Loader(numbers, sampler(49), {}), BugError);
  EXPECT_THROW(Loader(numbers, sampler(50), {}, {.epoch = 0, .step = 5}), BugError);
}

}  // namespace
}  // namespace lockstep::data
