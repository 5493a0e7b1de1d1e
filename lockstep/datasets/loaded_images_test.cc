// Images through the loader: every batch is the same bits, whoever reads it and wherever reading begins.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "lockstep/base/xxh3.h"
#include "lockstep/data/loader.h"
#include "lockstep/datasets/open_images.h"
#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using data::Loader;
using data::Position;

constexpr int kLanes = 4;
constexpr int64_t kBatch = 3;

uint64_t hash_of(const data::LaneBatch& lane) {
  Xxh3 hash;
  for (const auto& [name, tensor] : lane.tensors) hash.add(tensor.const_data_ptr(), tensor.nbytes());
  return hash.value();
}

// A hash for each lane of each step, by (epoch, step, lane).
using Hashes = std::map<std::array<int64_t, 3>, uint64_t>;

void read_step(Loader& loader, Hashes& hashes) {
  const data::StepBatch step = loader.next();
  for (const data::LaneBatch& lane : step.lanes) {
    hashes[{step.position.epoch, step.position.step, lane.lane}] = hash_of(lane);
  }
}

class LoadedImages : public ::testing::Test {
 protected:
  LoadedImages() {
    testing::write_classes(folder_, "", {"cats", "dogs", "eels"}, 9);
    const ImageOptions strong{.augment = Augment::kStrong, .exif = {}};
    images_ = open_images({.path = folder_.path(), .images = strong, .size = 48, .channels_last = true}).train;
  }

  Loader loader(int rank, int ranks, int workers, Position start = {}) const {
    const data::LaneSampler sampler(
        {.dataset_size = images_->size(), .lanes = kLanes, .batch_size = kBatch, .seed = 5});
    const int lanes = kLanes / ranks;
    return {images_, sampler, {.first_lane = rank * lanes, .last_lane = (rank + 1) * lanes, .workers = workers}, start};
  }

  // What the loaders of all ranks give from `start` to the end of the third epoch.
  Hashes hashes(int ranks, int workers, Position start = {}) const {
    Hashes all;
    for (int rank = 0; rank < ranks; ++rank) {
      Loader own = loader(rank, ranks, workers, start);
      while (own.position().epoch < 3) read_step(own, all);
    }
    return all;
  }

  testing::TempDir folder_;
  std::shared_ptr<const data::Dataset> images_;
};

TEST_F(LoadedImages, AreTheSameBitsAtAnyNumberOfRanksAndThreads) {
  const Hashes expected = hashes(1, 0);
  EXPECT_EQ(expected.size(), 3u * 3 * kLanes) << "three steps of three epochs, the last one of three samples";
  const auto at = [&expected](int64_t epoch) { return expected.at({epoch, 0, 0}); };
  EXPECT_NE(at(0), at(1)) << "another epoch, other batches";
  for (const int ranks : {1, 2, 4}) {
    for (const int workers : {1, 2, 7}) {
      EXPECT_EQ(hashes(ranks, workers), expected) << ranks << " ranks of " << workers << " threads";
    }
  }
}

TEST_F(LoadedImages, AreTheSameBitsAfterAResumeAnywhere) {
  const Hashes expected = hashes(1, 0);
  RandomStream random(1, Purpose::kShuffle, 0, 0);
  for (int i = 0; i < 10; ++i) {
    const Position start{.epoch = random.below(3), .step = random.below(3)};
    const int ranks = 1 << random.below(3), workers = static_cast<int>(random.below(4));
    Hashes rest = expected;
    rest.erase(rest.begin(), rest.lower_bound({start.epoch, start.step, 0}));
    EXPECT_EQ(hashes(ranks, workers, start), rest) << "from epoch " << start.epoch << ", step " << start.step;
  }
}

}  // namespace
}  // namespace lockstep::datasets
