// The batches of a rank's own lanes, step after step, epoch after epoch, made ahead of time by worker threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/prefetcher.h"
#include "lockstep/data/sampler.h"

namespace lockstep::data {

// A step's place in a run.
struct Position {
  uint32_t epoch = 0;
  int64_t step = 0;  // within the epoch
  bool operator==(const Position&) const = default;
};

// One lane's samples: data, target and size() as Batch has them; 0 rows where the lane is empty.
struct LaneBatch : Batch {
  int lane = 0;
};

struct StepBatch {
  Position position;
  int64_t global_samples = 0;    // of all lanes of all ranks
  std::vector<LaneBatch> lanes;  // this rank's, ascending
};

struct LoaderOptions {
  int first_lane = 0;
  int last_lane = 1;                                           // one past the last of this rank's lanes
  int workers = 0;                                             // threads; 0: next() makes the batches itself
  int prefetch = 3;                                            // steps made ahead
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);  // the most that next() waits for a worker
};

// Yields the same batches, bit for bit, for any number of workers. One consumer thread.
class Loader {
 public:
  // Throws ConfigError for options out of range, BugError for lanes that the sampler does not have.
  Loader(std::shared_ptr<const Dataset> dataset, LaneSampler sampler, LoaderOptions options, Position start = {});

  const LaneSampler& sampler() const { return source_->sampler; }

  // Of the step that next() will return.
  Position position() const { return position_; }

  // That step; then moves to the one after it, in the next epoch where the epoch ends. What the data set threw for
  // any of its lanes is thrown here, and the position stays. Throws IoError on a timeout.
  StepBatch next();

  // Goes on from there at once, wherever it is. Throws BugError for a step that the epoch does not have.
  void seek(Position position);

 private:
  // What the workers share; each batch is a unit, numbered through all steps and, within them, this rank's lanes.
  struct Source {
    std::shared_ptr<const Dataset> dataset;
    LaneSampler sampler;
    int first_lane;
    int lanes;
    Batch make(uint64_t unit) const;
    uint64_t first_unit(Position position) const;  // BugError for a step that the epoch does not have
  };

  std::shared_ptr<const Source> source_;
  Position position_;
  Prefetcher prefetcher_;
};

}  // namespace lockstep::data
