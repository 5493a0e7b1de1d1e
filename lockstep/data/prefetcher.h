// Batches that background threads make ahead of time, handed out in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct PrefetcherOptions {
  int workers = 0;   // threads; 0: next() makes the batches itself
  size_t ahead = 4;  // the most batches being made or waiting to be taken; at least 1
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);  // the most that next() waits
};

// Yields make(first), make(first + 1), … in that order, whichever worker finishes first. One consumer.
class Prefetcher {
 public:
  using Make = std::function<Batch(uint64_t unit)>;  // called by several threads at once

  // Starts the workers at unit `first`. Throws IoError if the system has no more threads.
  Prefetcher(Make make, uint64_t first, PrefetcherOptions options);
  // Waits for the batches that are being made, not for a consumer.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Returns the next batch. Rethrows what make() threw for it, at every call until seek(). Throws IoError if the batch
  // is not ready in time.
  Batch next();

  // Continues with make(unit) and drops what was made ahead. Does not wait.
  void seek(uint64_t unit);

 private:
  struct Slot {
    bool ready = false;
    Batch batch;
    std::exception_ptr error;
  };

  void work();
  Slot make_slot(uint64_t unit) const;
  Slot& slot(uint64_t unit) { return slots_[unit % slots_.size()]; }
  void stop();

  const Make make_;
  const PrefetcherOptions options_;

  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable room_;
  std::condition_variable ready_;
  std::vector<Slot> slots_;  // unit u waits in slot u mod slots
  uint64_t next_;            // the unit that next() returns
  uint64_t claimed_;         // the unit that the next free worker makes; within [next_, next_ + slots]
  uint64_t generation_ = 0;  // seek() raises it; batches begun before are dropped
  bool stopping_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace lockstep::data
