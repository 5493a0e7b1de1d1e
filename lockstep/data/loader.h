// The batches of a rank's own lanes, step after step and epoch after epoch. Worker threads read them ahead of time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/sample_queue.h"
#include "lockstep/data/sampler.h"

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
  int64_t global_samples = 0;    // over all lanes of all ranks
  std::vector<LaneBatch> lanes;  // this rank's lanes, ascending
  ReadStats stats = {};          // of reading them, whoever did
  int64_t wait_ns = 0;           // the time that next() took
};

struct LoaderOptions {
  int first_lane = 0;
  int last_lane = 1;  // one past the last of this rank's lanes
  int workers = 0;    // threads; 0: next() reads the samples itself
  // Steps read ahead: more where they are too small to keep the workers busy, and no more than so many bytes of
  // batches, but at least one step.
  int prefetch = 3;
  int64_t prefetch_bytes = int64_t{256} << 20;
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);  // the most that next() waits for a sample
};

// The threads that load a data set where nobody says how many: its share of `cores` for one that decodes, else none.
int usual_workers(const Dataset& dataset, int cores, int processes);

// Yields the same batches, bit for bit, for any number of workers. One consumer thread.
class Loader {
 public:
  // Throws ConfigError for options out of range, BugError for lanes that the sampler does not have.
  Loader(std::shared_ptr<const Dataset> dataset, LaneSampler sampler, LoaderOptions options, Position start = {});

  const LaneSampler& sampler() const { return source_->sampler; }
  const Dataset& dataset() const { return *dataset_; }

  // The position of the step that next() will return.
  Position position() const { return position_; }

  // Returns that step and advances to the one after it, in the next epoch where the epoch ends. Rethrows what the data
  // set threw for any of its lanes; the position then stays. Throws IoError on a timeout.
  StepBatch next();

  // Continues at `position` at once, wherever the loader is. Throws BugError for a step that the epoch does not have.
  void seek(Position position);

 private:
  // The part that the workers share. Each batch is a unit; units are numbered through all steps and, within a step,
  // through this rank's lanes.
  struct Source {
    LaneSampler sampler;
    int first_lane;
    int lanes;
    std::vector<SampleRead> samples(uint64_t unit) const;
    uint64_t first_unit(Position position) const;  // BugError for a step that the epoch does not have
  };

  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<const Source> source_;
  Position position_;
  SampleQueue queue_;
};

}  // namespace lockstep::data
