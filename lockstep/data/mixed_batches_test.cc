// A loader whose batches are mixed: the same at any number of ranks and threads, and after a resume.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/mix.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

constexpr int kLanes = 4;
constexpr int64_t kSamples = 53;  // an epoch of 5 steps, whose last one has an empty lane's neighbours of one row

std::shared_ptr<const Dataset> images() {
  at::manual_seed(3);
  return std::make_shared<TensorDataset>(at::rand({kSamples, 3, 9, 7}), at::arange(kSamples) % 10);
}

LaneSampler sampler() { return LaneSampler({.dataset_size = kSamples, .lanes = kLanes, .batch_size = 3, .seed = 8}); }

uint64_t hash_of(const Batch& batch) {
  uint64_t hash = kFnvSeed;
  for (const auto& [name, tensor] : batch.tensors) {
    hash = fnv1a(hash, std::string_view(name));
    const auto* bytes = static_cast<const char*>(tensor.const_data_ptr());
    hash = fnv1a(hash, std::string_view(bytes, tensor.nbytes()));
  }
  return hash;
}

using Hashes = std::map<std::pair<int, int>, uint64_t>;  // by step from `start` and lane

// Those of `steps` steps, of all ranks one after the other.
Hashes hashes_of(int ranks, int workers, int steps, Position start = {}) {
  Hashes hashes;
  for (int rank = 0; rank < ranks; ++rank) {
    const int own = kLanes / ranks;
    Loader loader(images(), sampler(),
                  {.first_lane = rank * own,
                   .last_lane = (rank + 1) * own,
                   .workers = workers,
                   .transform = mix({.mixup = 0.3, .cutmix = 1})},
                  start);
    for (int step = 0; step < steps; ++step) {
      for (const LaneBatch& lane : loader.next().lanes) {
        EXPECT_EQ(lane.target().sizes(), at::IntArrayRef({lane.size(), 10}));
        EXPECT_TRUE(hashes.emplace(std::pair(step, lane.lane), hash_of(lane)).second);
      }
    }
  }
  return hashes;
}

TEST(MixedBatches, AreTheSameAtAnyNumberOfRanksAndThreads) {
  const Hashes one = hashes_of(1, 0, 12);
  EXPECT_EQ(one.size(), 12u * kLanes);
  for (const int ranks : {1, 2, 4}) {
    for (const int workers : {0, 1, 2, 7}) EXPECT_EQ(hashes_of(ranks, workers, 12), one) << ranks << ", " << workers;
  }
}

TEST(MixedBatches, AreTheSameAfterAResume) {
  const Hashes whole = hashes_of(1, 0, 14);
  for (const auto& [first, at] : {std::pair(3, Position{0, 3}), std::pair(4, Position{0, 4}),
                                  std::pair(5, Position{1, 0}), std::pair(11, Position{2, 1})}) {
    Hashes wanted;
    for (const auto& [key, hash] : whole) {
      if (key.first >= first) wanted.emplace(std::pair(key.first - first, key.second), hash);
    }
    EXPECT_EQ(hashes_of(2, 2, 14 - first, at), wanted) << first;
  }
}

TEST(MixedBatches, HavePartnersOfTheirLaneAlone) {
  Loader loader(images(), sampler(), {.last_lane = kLanes, .workers = 2, .transform = mix({.cutmix = 1})});
  Loader plain(images(), sampler(), {.last_lane = kLanes});
  int shared = 0;
  for (int step = 0; step < 5; ++step) {
    const StepBatch mixed = loader.next(), as_read = plain.next();
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const at::Tensor own = at::one_hot(as_read.lanes[lane].target(), 10), both = own.logical_or(own.roll(1, 0));
      const at::Tensor& target = mixed.lanes[lane].target();
      EXPECT_TRUE(at::allclose((target * both).sum(1), at::ones({mixed.lanes[lane].size()})));
      shared += at::equal(target.gt(0), both) && !at::equal(both, own.to(at::kBool)) ? 1 : 0;
    }
  }
  EXPECT_GT(shared, 5) << "a rectangle may be empty, but not each";
}

// Lanes of one row have no partner, and others no row.
TEST(MixedBatches, HaveProbabilitiesInEveryLane) {
  constexpr int64_t kSome = 50;
  const auto some = std::make_shared<TensorDataset>(at::rand({kSome, 3, 9, 7}), at::arange(kSome) % 10);
  Loader loader(some, LaneSampler({.dataset_size = kSome, .lanes = kLanes, .batch_size = 3, .seed = 8}),
                {.last_lane = kLanes, .workers = 1, .transform = mix({.mixup = 0.3, .cutmix = 1})}, {.step = 4});
  const StepBatch last = loader.next();
  std::vector<int64_t> rows;
  for (const LaneBatch& lane : last.lanes) {
    rows.push_back(lane.target().size(0));
    EXPECT_EQ(lane.target().scalar_type(), at::kFloat);
    EXPECT_EQ(lane.target().sizes(), at::IntArrayRef({lane.data().size(0), 10}));
    EXPECT_TRUE(at::allclose(lane.target().sum(1), at::ones({lane.size()})));
  }
  EXPECT_EQ(rows, (std::vector<int64_t>{1, 1, 0, 0}));
}

TEST(MixedBatches, OfDataThatCantBeMixedAreRefusedAtOnce) {
  const auto points = std::make_shared<TensorDataset>(at::rand({kSamples, 4}), at::arange(kSamples));
  EXPECT_THROW(Loader(points, sampler(), {.last_lane = kLanes, .transform = mix({.mixup = 1})}), ConfigError);
}

struct Failing final : BatchTransform {
  void check(const Dataset&) const override {}
  void apply(Batch&, const Dataset&, const LaneDraw& draw) const override {
    if (draw.step == 2) throw DataError("step 2 can't be mixed");
  }
  std::string text() const override { return "failing"; }
};

TEST(MixedBatches, ThatFailAreNextsError) {
  for (const int workers : {0, 2}) {
    Loader loader(images(), sampler(),
                  {.last_lane = kLanes, .workers = workers, .transform = std::make_shared<Failing>()});
    for (int step = 0; step < 2; ++step) loader.next();
    for (int i = 0; i < 2; ++i) EXPECT_THROW(loader.next(), DataError);
    loader.seek({.epoch = 0, .step = 3});
    EXPECT_EQ(loader.next().position.step, 3);
  }
}

}  // namespace
}  // namespace lockstep::data
