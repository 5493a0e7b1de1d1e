// Batches that threads read sample by sample ahead of time, handed out in order.
//
// The algorithm: a unit is a batch. Units are numbered and opened in order: each gets the list of its samples and a
// block of the pool. Workers take runs of a few samples from the oldest open unit that has some left, so that all of
// them work on the batch that is wanted first; a worker that finds none left opens the next unit, if there is room
// for it. The unit is ready when its last run has come back. The consumer takes units in order. While it waits for one,
// a helper thread reads in its place, this unit alone: so no core is idle, and no sample that hangs can hold the
// consumer, which throws after the timeout. Without workers the consumer reads all by itself. Who reads a sample, and
// when, has no part in what is read.
//
// Who reads a unit's last run completes its batch (SampleQueueOptions::complete), so that this, too, is done ahead.
//
// Samples are read twice until one has been, to see whether read() writes all of it: memory is used again.
//
// The threads share what they work on with the queue, and own it too: a thread whose sample hangs is left behind.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "lockstep/data/bad_samples.h"
#include "lockstep/data/batch_pool.h"
#include "lockstep/data/read_sample.h"

namespace lockstep::data {

constexpr int kMostWorkers = 256;

struct SampleQueueOptions {
  using Complete = std::function<void(uint64_t unit, Batch& batch)>;

  int workers = 0;                   // threads, at most kMostWorkers; 0: next() reads all by itself
  size_t ahead = 4;                  // the most units that are being read or wait to be taken; at least 1
  std::optional<uint64_t> end = {};  // one past the last unit; nothing: there is no last one
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);  // the most that next() waits for a sample
  // The most that the destructor waits for one, where the timeout is no shorter.
  std::chrono::nanoseconds patience = std::chrono::minutes(5);
  // Called for each unit once its samples have been read, by the thread that read the last one. May change the batch.
  Complete complete = {};
  // For samples that can't be read; null: the first one is next()'s error.
  std::shared_ptr<const Substitutes> substitutes = nullptr;
  BatchMemory memory = {};  // of the batches
};

// One consumer thread.
class SampleQueue {
 public:
  // The samples of a unit, at most `most_rows`. Called under a lock.
  using Plan = std::function<std::vector<SampleRead>(uint64_t unit)>;

  struct Unit {
    Batch batch;  // without the rows of places that stayed empty
    ReadStats stats;
    std::vector<BadSample> bad;  // met for its places, in their order
    int64_t empty = 0;           // places
  };

  // Starts the workers at unit `first`. Throws ConfigError for a number of workers out of range and for fields that no
  // batch can have (check_fields), IoError if the system has no more threads.
  SampleQueue(std::shared_ptr<const Dataset> dataset, Plan plan, int64_t most_rows, uint64_t first,
              SampleQueueOptions options);
  // Waits for the samples that are being read, but for none longer than the timeout and SampleQueueOptions::patience:
  // its thread then goes on by itself and keeps the data set. A data set that its shared pointer does not own
  // (use_count() 0) is waited for without end.
  ~SampleQueue();
  SampleQueue(const SampleQueue&) = delete;
  SampleQueue& operator=(const SampleQueue&) = delete;

  // Returns the next unit. Rethrows what read_sample threw for the first of its samples that failed, at every call
  // until seek(). Throws IoError that names the sample which has been read longest if no more of the unit is read for
  // as long as the timeout; the time that the process is stopped (Ctrl-Z) does not count.
  Unit next();

  // Continues with `unit` and drops what was read ahead. Does not wait.
  void seek(uint64_t unit);

  const BatchPool& pool() const;

 private:
  struct State;
  void stop();

  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;  // the workers, then the helper; each has its own copy of state_
};

}  // namespace lockstep::data
