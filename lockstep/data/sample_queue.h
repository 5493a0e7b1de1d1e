// Batches that threads read sample by sample ahead of time, handed out in order.
//
// The algorithm: a unit is a batch. Units are numbered and opened in order: each gets the list of its samples and a
// block of the pool. Readers take runs of a few samples from the oldest open unit that has some left, so that all of
// them work on the batch that is wanted first; a reader that finds none left opens the next unit, if there is room
// for it. The unit is ready when its last run has come back. The consumer takes units in order, and while the one that
// it wants is not ready, it is a reader itself, of this unit alone: without threads it reads all of it. Who reads a
// sample, and when, has no part in what is read. Only waits for other threads are timed, not the consumer's own reads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/data/batch_pool.h"
#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct SampleRead {
  int64_t index = 0;
  Draw draw;
};

struct SampleQueueOptions {
  int workers = 0;   // threads; 0: next() reads all by itself
  size_t ahead = 4;  // the most units that are being read or wait to be taken; at least 1
  uint64_t end = std::numeric_limits<uint64_t>::max();         // one past the last unit
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);  // the most that next() waits for a worker
};

// One consumer thread.
class SampleQueue {
 public:
  // The samples of a unit, at most `most_rows`. Called under a lock.
  using Plan = std::function<std::vector<SampleRead>(uint64_t unit)>;

  struct Unit {
    Batch batch;
    ReadStats stats;
  };

  // Starts the workers at unit `first`. Throws IoError if the system has no more threads.
  SampleQueue(std::shared_ptr<const Dataset> dataset, Plan plan, int64_t most_rows, uint64_t first,
              SampleQueueOptions options);
  // Waits for the samples that are being read, not for a consumer.
  ~SampleQueue();
  SampleQueue(const SampleQueue&) = delete;
  SampleQueue& operator=(const SampleQueue&) = delete;

  // Returns the next unit. Rethrows what the data set threw for the first of its samples that failed, at every call
  // until seek(). Throws IoError that names the sample which has been read longest if the unit is not ready in time.
  Unit next();

  // Continues with `unit` and drops what was read ahead. Does not wait.
  void seek(uint64_t unit);

  const BatchPool& pool() const { return pool_; }

 private:
  // A unit that is being read, or ready.
  struct Open {
    std::vector<SampleRead> samples;
    std::shared_ptr<SampleRows> block;  // null for an empty lane
    size_t claimed = 0;                 // samples that readers have taken; they are the first ones
    size_t left = 0;                    // samples that are not read yet
    ReadStats stats;
    std::exception_ptr error;  // of the first sample that failed
    size_t failed = 0;         // its place
  };
  // Some samples of a unit that one reader reads.
  struct Run {
    std::shared_ptr<Open> unit;
    size_t first = 0;
    size_t count = 0;
    std::vector<int64_t> soon;  // samples to tell the data set of beforehand
  };
  // What a worker reads just now.
  struct Desk {
    std::atomic<int64_t> index = -1;  // of the sample; -1: none
    std::atomic<int64_t> since = 0;   // monotonic_ns()
  };
  struct Outcome {
    ReadStats stats;
    std::exception_ptr error;
    size_t failed = 0;
  };

  void work(Desk& desk);
  void serve(std::unique_lock<std::mutex>& lock, Run run, Desk* desk);
  bool find_run(Run& run);
  bool take_run(const std::shared_ptr<Open>& unit, Run& run) const;
  void open_unit(Run& run);
  Outcome read(const Run& run, Desk* desk) const;
  void finish(const Run& run, const Outcome& outcome);
  [[noreturn]] void throw_late() const;
  void stop();

  const std::shared_ptr<const Dataset> dataset_;
  const Plan plan_;
  const SampleQueueOptions options_;
  BatchPool pool_;

  std::mutex mutex_;                             // guards all below but desks and threads
  std::condition_variable room_;                 // for workers: there may be samples to take
  std::condition_variable ready_;                // for the consumer: a unit is ready
  std::deque<std::shared_ptr<Open>> units_;      // those from next_ on
  std::deque<std::vector<SampleRead>> planned_;  // the units after them, of which the data set was told
  uint64_t next_;                                // the unit that next() returns
  bool stopping_ = false;

  std::deque<Desk> desks_;  // one a worker
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::data
