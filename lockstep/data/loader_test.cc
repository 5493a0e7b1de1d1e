#include "lockstep/data/loader.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

// Sample i is the number i (+ 1000 · epoch); the samples `bad` are damaged.
class Numbers : public Dataset {
 public:
  // Counts what is read in *read, if that is given.
  explicit Numbers(int64_t size, std::vector<int64_t> bad = {}, std::atomic<int64_t>* read = nullptr)
      : size_(size), bad_(std::move(bad)), read_(read) {}
  int64_t size() const override { return size_; }
  std::vector<Field> fields() const override {
    return {{.name = "data", .dtype = at::kFloat, .shape = {1}}, {.name = "target", .dtype = at::kLong, .shape = {}}};
  }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats& stats) const override {
    check_index(index, size_);
    if (std::find(bad_.begin(), bad_.end(), index) != bad_.end()) throw DataError("sample ", index, " is damaged");
    if (read_ != nullptr) ++*read_;
    stats.bytes += 100;
    rows[0].fill_(index);
    rows[1].fill_(static_cast<int64_t>(draw.number) + 1000 * draw.epoch);
  }
  std::string fingerprint() const override { return "numbers"; }
  int64_t classes() const override { return size_; }
  std::string description() const override { return "numbers"; }

 private:
  int64_t size_;
  std::vector<int64_t> bad_;
  std::atomic<int64_t>* read_;
};

// Numbers whose sample 20 can't be read the first time.
class OnceDamaged final : public Dataset {
 public:
  int64_t size() const override { return sound_.size(); }
  std::vector<Field> fields() const override { return sound_.fields(); }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats& stats) const override {
    (index == 20 && !failed_.exchange(true) ? damaged_ : sound_).read(index, draw, rows, stats);
  }
  std::string fingerprint() const override { return sound_.fingerprint(); }
  int64_t classes() const override { return sound_.classes(); }
  std::string description() const override { return sound_.description(); }

 private:
  Numbers sound_{50}, damaged_{50, {20}};
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
INSTANTIATE_TEST_SUITE_P(Workers, LoaderTest, ::testing::Values(0, 1, 2, 7));

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
  Loader loader(std::make_shared<Numbers>(50, std::vector<int64_t>{20}), sampler(50, false), options(0, 4));
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

// All that the batches of `epochs` epochs hold, in one number.
uint64_t hash_of(Loader& loader, uint32_t epochs) {
  uint64_t hash = kFnvSeed;
  while (loader.position().epoch < epochs) {
    const StepBatch step = loader.next();
    for (const LaneBatch& lane : step.lanes) {
      for (const auto& [name, tensor] : lane.tensors) {
        hash = fnv1a(hash, std::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()));
      }
      hash = fnv1a(hash, static_cast<uint64_t>(lane.lane));
    }
  }
  return hash;
}

std::shared_ptr<const Dataset> images() {
  at::manual_seed(3);
  return std::make_shared<TensorDataset>(at::rand({100, 1, 28, 28}), at::arange(100));
}

TEST_P(LoaderTest, GivesTheSameBitsOverThreeEpochs) {
  Loader alone(images(), sampler(100), {.last_lane = 4});
  LoaderOptions helped = options(0, 4);
  helped.prefetch = 2;
  Loader loader(images(), sampler(100), helped);
  EXPECT_EQ(hash_of(loader, 3), hash_of(alone, 3));
}

TEST_P(LoaderTest, ResumesAtTenRandomPositions) {
  Loader loader(images(), sampler(100), options(0, 4));
  RandomStream random(1, Purpose::kShuffle, 0, 0);
  for (int i = 0; i < 10; ++i) {
    const Position at{.epoch = random.below(3), .step = random.below(9)};
    Loader fresh(images(), sampler(100), {.last_lane = 4}, at);
    loader.seek(at);
    EXPECT_EQ(hash_of(loader, 3), hash_of(fresh, 3)) << at.epoch << ", " << at.step;
  }
}

TEST_P(LoaderTest, NamesTheFirstBadSampleAtAnyNumberOfThreads) {
  const auto set = std::make_shared<Numbers>(48, std::vector<int64_t>{9, 6, 7});
  const LaneSampler one_lane({.dataset_size = 48, .batch_size = 12, .shuffle = false});
  for (int i = 0; i < 20; ++i) {
    Loader loader(set, one_lane, options(0, 1));
    try {
      loader.next();
      FAIL() << "not refused";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "sample 6 is damaged");
    }
  }
}

TEST_P(LoaderTest, SaysWhatReadingTook) {
  Loader loader(std::make_shared<Numbers>(50), sampler(50), options(0, 4));
  const StepBatch step = loader.next();
  EXPECT_EQ(step.stats.bytes, 12 * 100) << "100 bytes a sample, by Numbers";
  EXPECT_GT(step.wait_ns, 0);
}

// Batches that are let go of come back to the pool.
TEST_P(LoaderTest, TakesNoMoreMemoryAfterTwentyEpochs) {
  Loader loader(std::make_shared<Numbers>(50), sampler(50), options(0, 4));
  std::set<const void*> blocks;
  while (loader.position().epoch < 20) {
    for (const LaneBatch& lane : loader.next().lanes) {
      if (lane.size() > 0) blocks.insert(lane.data().const_data_ptr());
    }
  }
  EXPECT_LE(blocks.size(), 4u * (3 + 2)) << "four lanes of three steps ahead, and of those that are looked at";
}

// The bound is on bytes, but a step is always whole.
TEST(Loader, MemoryIsBoundedInBytes) {
  std::atomic<int64_t> read = 0;
  const auto set = std::make_shared<Numbers>(5000, std::vector<int64_t>(), &read);
  const int64_t lane_bytes = 3 * (4 + 8);
  const auto read_ahead = [&](int64_t bytes) {
    read = 0;
    Loader loader(set, sampler(5000), {.last_lane = 4, .workers = 2, .prefetch = 64, .prefetch_bytes = bytes});
    const Deadline soon(std::chrono::milliseconds(50));
    while (!soon.passed()) std::this_thread::yield();
    return read.load();
  };
  // Each worker may read its first sample twice.
  EXPECT_THAT(read_ahead(10 * lane_bytes), AllOf(Ge(10 * 3 + 1), Le(10 * 3 + 2)));
  EXPECT_THAT(read_ahead(1), AllOf(Ge(4 * 3 + 1), Le(4 * 3 + 2))) << "the lanes of a step";
}

TEST(Loader, ReadsNothingBeyondItsEnd) {
  for (const int workers : {0, 2}) {
    std::atomic<int64_t> read = 0;
    Loader loader(std::make_shared<Numbers>(48, std::vector<int64_t>{}, &read), sampler(48),
                  {.last_lane = 4, .workers = workers, .prefetch = 10, .end = Position{.epoch = 1}});
    for (int64_t step = 0; step < loader.sampler().steps_per_epoch(); ++step) loader.next();
    usleep(20'000);  // for what threads would read ahead
    // Each reader, the loader's own thread among them, may read its first sample twice.
    EXPECT_THAT(read.load(), AllOf(Ge(48 + 1), Le(48 + 1 + workers)));
    EXPECT_THROW(loader.next(), BugError);
  }
}

// 22 batches of three samples are two for each of 32 workers.
TEST(Loader, ReadsAheadForAllWorkersWhereBatchesAreSmall) {
  std::atomic<int64_t> read = 0;
  const auto set = std::make_shared<Numbers>(5000, std::vector<int64_t>(), &read);
  Loader loader(set, sampler(5000), {.last_lane = 4, .workers = 32, .prefetch = 1});
  const Deadline late(std::chrono::seconds(10));
  while (read < 22 * 3 + 1 && !late.passed()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(read, 22 * 3 + 1);
  EXPECT_LE(read, 22 * 3 + 22) << "each worker's first twice, where no other had read one yet";
}

TEST(Loader, DataThatDecodesHasItsShareOfTheCores) {
  struct Decoding : Numbers {
    using Numbers::Numbers;
    bool decodes() const override { return true; }
  };
  EXPECT_EQ(usual_workers(Numbers(5), 8, 2), 0);
  EXPECT_EQ(usual_workers(Decoding(5), 8, 2), 4);
  EXPECT_EQ(usual_workers(Decoding(5), 2, 4), 1);
}

TEST(Loader, ChecksItsOptions) {
  const auto numbers = std::make_shared<Numbers>(50);
  EXPECT_THROW(Loader(numbers, sampler(50), {.workers = -1}), ConfigError);
  EXPECT_THROW(Loader(numbers, sampler(50), {.workers = 100000}), ConfigError);
  EXPECT_THROW(Loader(numbers, sampler(50), {.prefetch = 0}), ConfigError);
  EXPECT_THROW(Loader(numbers, sampler(50), {.prefetch_bytes = 0}), ConfigError);
  EXPECT_THROW(Loader(numbers, sampler(50), {.first_lane = 2, .last_lane = 5}), BugError);
  EXPECT_THROW(Loader(numbers, sampler(50), {.first_lane = 2, .last_lane = 2}), BugError);
  EXPECT_THROW(Loader(numbers, sampler(49), {}), BugError);
  EXPECT_THROW(Loader(numbers, sampler(50), {}, {.epoch = 0, .step = 5}), BugError);
}

}  // namespace
}  // namespace lockstep::data
