// What the threads of a loader read just now, so that a sample that hangs can be named.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>

#include "lockstep/base/clock.h"
#include "lockstep/data/dataset.h"

namespace lockstep::data {

// Of one thread, which alone writes it.
struct alignas(64) Desk {
  std::atomic<int64_t> index = -1;  // of the sample; -1: none
  std::atomic<int64_t> since = 0;   // monotonic_ns()
  bool gone = false;                // the thread ends; guarded by its queue's lock

  void put(int64_t sample) {
    since.store(monotonic_ns(), std::memory_order_release);
    index.store(sample, std::memory_order_release);
  }
  void clear() { index.store(-1, std::memory_order_release); }
};

// Throws IoError that names the sample which has been read longest. `timeout`: of the wait that is over.
[[noreturn]] void throw_late(const std::deque<Desk>& desks, const Dataset& dataset, std::chrono::nanoseconds timeout);

}  // namespace lockstep::data
