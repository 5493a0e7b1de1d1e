// Samples that can't be read, passed over: by the substitutes alone, by a loader, and by a chunk reader.
#include "lockstep/data/bad_samples.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/data/chunk_reader.h"
#include "lockstep/data/loader.h"

namespace lockstep::data {
namespace {

constexpr int kLanes = 4;

// Sample i is (i, its draw's number); the samples `bad` are damaged, and reading `lost` fails as a disk does.
class Numbers : public Dataset {
 public:
  explicit Numbers(std::set<int64_t> bad, int64_t lost = -1, int64_t size = 53)
      : bad_(std::move(bad)), lost_(lost), size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<Field> fields() const override {
    return {{.name = "data", .dtype = at::kLong, .shape = {2}}, {.name = "target", .dtype = at::kLong, .shape = {}}};
  }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats&) const override {
    if (bad_.contains(index)) throw DataError(name_of(index), ": is damaged");
    if (index == lost_) throw IoError(name_of(index), ": Input/output error");
    rows[0].mutable_data_ptr<int64_t>()[0] = index;
    rows[0].mutable_data_ptr<int64_t>()[1] = static_cast<int64_t>(draw.number);
    *rows[1].mutable_data_ptr<int64_t>() = index;
  }
  std::string fingerprint() const override { return "numbers"; }
  std::string description() const override { return "numbers"; }

 private:
  std::set<int64_t> bad_;
  int64_t lost_, size_;
};

// All its samples have one name, which is no UTF-8.
class OneName final : public Numbers {
 public:
  using Numbers::Numbers;
  std::string name_of(int64_t) const override { return "caf\xe9"; }
};

LaneSampler sampler() { return LaneSampler({.dataset_size = 53, .lanes = kLanes, .batch_size = 3, .seed = 8}); }

struct Found {
  std::map<std::pair<int, int>, std::vector<int64_t>> rows;  // by step and lane
  std::vector<std::set<std::string>> bad;                    // by step
  bool operator==(const Found&) const = default;
};

// What `steps` steps hold, of all ranks one after the other.
Found read_all(const std::set<int64_t>& bad, int ranks, int workers, int steps, Position start = {}) {
  Found found;
  found.bad.resize(static_cast<size_t>(steps));
  for (int rank = 0; rank < ranks; ++rank) {
    const int own = kLanes / ranks;
    Loader loader(std::make_shared<Numbers>(bad), sampler(),
                  {.first_lane = rank * own,
                   .last_lane = (rank + 1) * own,
                   .workers = workers,
                   .skipped = std::make_shared<SkippedSamples>(20)},
                  start);
    for (int step = 0; step < steps; ++step) {
      const StepBatch batch = loader.next();
      for (const BadSample& each : batch.skipped) found.bad[static_cast<size_t>(step)].insert(each.name);
      for (const LaneBatch& lane : batch.lanes) {
        const auto* first = lane.data().const_data_ptr<int64_t>();
        found.rows[{step, lane.lane}] = {first, first + 2 * lane.size()};
      }
    }
  }
  return found;
}

const std::set<int64_t> kBad = {2, 17, 30, 41};

TEST(BadSamples, ArePassedOverAlikeAtAnyNumberOfRanksAndThreads) {
  const Found one = read_all(kBad, 1, 0, 14);
  for (const int ranks : {1, 2, 4}) {
    for (const int workers : {0, 1, 2, 7}) EXPECT_EQ(read_all(kBad, ranks, workers, 14).rows, one.rows) << ranks;
  }
  std::set<std::string> names;
  for (const auto& step : one.bad) names.insert(step.begin(), step.end());
  EXPECT_EQ(names, (std::set<std::string>{"sample 2", "sample 17", "sample 30", "sample 41"}));
}

TEST(BadSamples, ArePassedOverAlikeAfterAResume) {
  const Found whole = read_all(kBad, 1, 2, 14);
  const Found rest = read_all(kBad, 2, 2, 9, {.epoch = 1, .step = 0});
  for (const auto& [key, rows] : rest.rows) {
    EXPECT_EQ(rows, whole.rows.at({key.first + 5, key.second})) << key.first << ", " << key.second;
  }
}

// Lanes keep their rows; only the places of bad samples hold others, which are drawn for those places.
TEST(BadSamples, LeaveAllOtherPlacesAsTheyWere) {
  const Found sound = read_all({}, 1, 2, 5), found = read_all(kBad, 1, 2, 5);
  size_t others = 0;
  std::set<int64_t> numbers;
  for (const auto& [key, rows] : sound.rows) {
    const auto& now = found.rows.at(key);
    ASSERT_EQ(now.size(), rows.size());
    for (size_t i = 0; i < rows.size(); i += 2) {
      EXPECT_FALSE(kBad.contains(now[i]));
      if (!kBad.contains(rows[i])) {
        EXPECT_TRUE(now[i] == rows[i] && now[i + 1] == rows[i + 1]) << "at " << rows[i];
        continue;
      }
      ++others;
      EXPECT_GE(now[i + 1], int64_t{1} << 55) << "augmented by numbers of its own";
      EXPECT_TRUE(numbers.insert(now[i + 1]).second);
    }
  }
  EXPECT_EQ(others, kBad.size());
}

TEST(BadSamples, BeyondTheLimitAreNamedAndThePositionStays) {
  for (const int workers : {0, 2}) {
    Loader loader(std::make_shared<Numbers>(kBad), sampler(),
                  {.last_lane = kLanes, .workers = workers, .skipped = std::make_shared<SkippedSamples>(3)});
    std::string message;
    Position before;
    try {
      for (int step = 0; step < 5; ++step) {
        before = loader.position();
        loader.next();
      }
    } catch (const DataError& error) {
      message = error.what();
    }
    EXPECT_EQ(loader.position(), before);
    EXPECT_NE(message.find("4 samples can't be read, and skip-bad passes over 3"), std::string::npos) << message;
    for (const int64_t bad : kBad) EXPECT_NE(message.find(cat("sample ", bad, ": is damaged")), std::string::npos);
    EXPECT_THROW(loader.next(), DataError) << "again";
    EXPECT_LE(loader.skipped()->all().size(), 3u);
  }
}

// Trains an epoch, whose batches are full.
void train_epoch(Loader& loader) {
  for (int step = 0; step < 5; ++step) {
    const StepBatch batch = loader.next();
    int64_t rows = 0;
    for (const LaneBatch& lane : batch.lanes) rows += lane.size();
    ASSERT_EQ(rows, batch.global_samples) << step;
  }
}

TEST(BadSamples, OfOneNameAreCountedEach) {
  for (const int workers : {0, 2}) {
    const auto loader_with = [&](int64_t most) {
      return Loader(std::make_shared<OneName>(kBad), sampler(),
                    {.last_lane = kLanes, .workers = workers, .skipped = std::make_shared<SkippedSamples>(most)});
    };
    Loader enough = loader_with(4), few = loader_with(3);
    train_epoch(enough);
    EXPECT_EQ(enough.skipped()->all().size(), 4u);
    EXPECT_EQ(enough.skipped()->all()[0].why, "caf\\xe9: is damaged");
    EXPECT_EQ(enough.skipped()->all()[0].name, "caf\\xe9");
    EXPECT_THROW(train_epoch(few), DataError);
  }
}

// Such as by a list that hears of no rank.
TEST(BadSamples, NoPlaceStaysEmptyInSilence) {
  std::set<int64_t> bad;
  for (int64_t i = 0; i < 40; ++i) bad.insert(i);
  const auto deaf = [](const std::string&) { return std::vector<std::string>(); };
  for (const int workers : {0, 2}) {
    Loader loader(std::make_shared<Numbers>(bad), sampler(),
                  {.last_lane = kLanes, .workers = workers, .skipped = std::make_shared<SkippedSamples>(1, deaf)});
    EXPECT_THROW(train_epoch(loader), BugError);
    EXPECT_THROW(loader.next(), BugError) << "again";
  }
}

TEST(BadSamples, ALostDiskIsNone) {
  for (const int workers : {0, 2}) {
    Loader loader(std::make_shared<Numbers>(std::set<int64_t>(), 17), sampler(),
                  {.last_lane = kLanes, .workers = workers, .skipped = std::make_shared<SkippedSamples>(9)});
    const auto epoch = [&] {
      for (int step = 0; step < 5; ++step) loader.next();
    };
    EXPECT_THROW(epoch(), IoError);
  }
}

TEST(BadSamples, MayNotBeAll) {
  std::set<int64_t> all;
  for (int64_t i = 0; i < 53; ++i) all.insert(i);
  Loader few(std::make_shared<Numbers>(all), sampler(),
             {.last_lane = kLanes, .skipped = std::make_shared<SkippedSamples>(5)});
  EXPECT_THROW(few.next(), DataError) << "no more than six are tried for a place";
  Loader many(std::make_shared<Numbers>(all), sampler(),
              {.last_lane = kLanes, .skipped = std::make_shared<SkippedSamples>(1000)});
  try {
    many.next();
    FAIL() << "not refused";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("none of its samples can be read"), std::string::npos) << error.what();
  }
}

TEST(BadSamples, AreLeftOutOfAnEvaluationsChunks) {
  for (const int workers : {0, 2}) {
    const Numbers numbers({3, 4, 5, 9}, -1, 12);
    ChunkReader reader(numbers, 0, 12, 3, workers, /*leaves_out=*/true);
    std::vector<int64_t> sizes, samples;
    for (int chunk = 0; chunk < 4; ++chunk) {
      const Batch batch = reader.next();
      sizes.push_back(batch.size());
      for (int64_t row = 0; row < batch.size(); ++row) samples.push_back(batch.target()[row].item<int64_t>());
    }
    EXPECT_EQ(sizes, (std::vector<int64_t>{3, 0, 3, 2}));
    EXPECT_EQ(samples, (std::vector<int64_t>{0, 1, 2, 6, 7, 8, 10, 11}));
    ASSERT_EQ(reader.bad().size(), 4u);
    EXPECT_EQ(reader.bad()[3], (BadSample{"sample 9", "sample 9: is damaged", 9}));
  }
}

}  // namespace
}  // namespace lockstep::data
