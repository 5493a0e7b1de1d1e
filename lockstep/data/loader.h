// The batches of a rank's own lanes, step after step and epoch after epoch. Worker threads read them ahead of time.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/data/batch_transform.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/sample_queue.h"
#include "lockstep/data/sampler.h"
#include "lockstep/data/skipped_samples.h"

namespace lockstep::data {

// The position of a step in a run.
struct Position {
  uint32_t epoch = 0;
  int64_t step = 0;  // within the epoch
  bool operator==(const Position&) const = default;
};

// One lane's samples; 0 rows where the lane is empty.
struct LaneBatch : Batch {
  int lane = 0;
};

struct StepBatch {
  Position position;
  uint64_t order_hash = 0;              // LaneSampler::fingerprint()
  int64_t global_samples = 0;           // over all lanes of all ranks
  std::vector<LaneBatch> lanes;         // this rank's lanes, ascending
  ReadStats stats = {};                 // of reading them, whoever did
  int64_t wait_ns = 0;                  // the time that next() waited or read
  std::vector<BadSample> skipped = {};  // on any rank, for the first time: others are in their places
};

// A step as this rank has read it, of which the others have not heard yet.
struct ReadStep {
  StepBatch step;
  std::vector<BadSample> bad = {};  // met for this rank's lanes
  int64_t empty = 0;                // places that neither their sample nor another one has taken
  std::exception_ptr failed = {};   // what reading threw; `step` then has not all lanes
};

// Who is told that a rank waits for data. The thread that calls next() calls it.
class LoaderWatch {
 public:
  virtual ~LoaderWatch() = default;
  virtual void wait_begins() = 0;
  virtual void wait_ends(int64_t wait_ns, const ReadStats& stats) = 0;  // also if next() throws
};

constexpr int kMostPrefetch = 64;

struct LoaderOptions {
  int first_lane = 0;
  int last_lane = 1;  // one past the last of this rank's lanes
  int workers = 0;    // threads; 0: next() reads the samples itself
  // Steps read ahead, 1 to kMostPrefetch: more where they are too small to keep the workers busy, and no more than so
  // many bytes of batches, but at least one step.
  int prefetch = 3;
  int64_t prefetch_bytes = int64_t{256} << 20;
  // One past the last step that next() is asked for: none is read ahead from there on. Nothing: there is no last one.
  std::optional<Position> end = {};
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);  // the most that next() waits for a sample
  std::shared_ptr<const BatchTransform> transform = nullptr;   // of each lane's batch; null: none
  // Where samples that can't be read are listed, and others put in their places (bad_samples.h). next() is then a
  // collective of the list's ranks. Null: the first one is next()'s error.
  std::shared_ptr<SkippedSamples> skipped = nullptr;
  std::shared_ptr<LoaderWatch> watch = nullptr;
  BatchMemory memory = {};  // of the batches' large tensors; where a GPU trains, pinned
};

// The threads that load a data set where nobody says how many: its share of `cores` for one that decodes, else none.
int usual_workers(const Dataset& dataset, int cores, int processes);

// Yields the same batches, bit for bit, for any number of workers. One consumer thread.
class Loader {
 public:
  // Throws ConfigError for options out of range and a transform that does not go with the data set, BugError for lanes
  // that the sampler does not have.
  Loader(std::shared_ptr<const Dataset> dataset, LaneSampler sampler, LoaderOptions options, Position start = {});

  const LaneSampler& sampler() const { return source_->sampler; }
  const Dataset& dataset() const { return *dataset_; }

  // The position of the step that next() will return.
  Position position() const { return position_; }

  // Returns that step and advances to the one after it, in the next epoch where the epoch ends. Rethrows what the data
  // set threw for any of its lanes; the position then stays. Throws IoError on a timeout, DataError as
  // SkippedSamples::add. No batch is short: a place that stays empty is a BugError.
  StepBatch next() { return settle(read()); }

  // The two halves of next(), for who takes batches ahead. read() advances, unless it fails, and tells no rank.
  // settle() lists the bad samples of the step when it is used, in the order of the steps, and throws what next()
  // throws; the position is the step's again then. It is the collective.
  ReadStep read();
  StepBatch settle(ReadStep read);

  // Continues at `position` at once, wherever the loader is. Throws BugError for a step that the epoch does not have.
  void seek(Position position);

  // LoaderOptions::transform.
  const std::shared_ptr<const BatchTransform>& transform() const { return source_->transform; }
  // The list of LoaderOptions::skipped.
  const std::shared_ptr<SkippedSamples>& skipped() const { return skipped_; }

 private:
  void read_lanes(ReadStep& read);

  // The part that the workers share. Each batch is a unit; units are numbered through all steps and, within a step,
  // through this rank's lanes.
  struct Source {
    LaneSampler sampler;
    int first_lane;
    int lanes;
    std::shared_ptr<const BatchTransform> transform;
    LaneDraw place_of(uint64_t unit) const;
    std::vector<SampleRead> samples(uint64_t unit) const;
    uint64_t first_unit(Position position) const;  // BugError for a step that the epoch does not have
  };
  static SampleQueueOptions::Complete completion_of(const std::shared_ptr<const Source>& source,
                                                    const std::shared_ptr<const Dataset>& dataset);

  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<const Source> source_;
  std::shared_ptr<SkippedSamples> skipped_;
  std::shared_ptr<LoaderWatch> watch_;
  Position position_;
  SampleQueue queue_;
};

}  // namespace lockstep::data
