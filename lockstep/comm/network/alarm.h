// An alarm for waits in a library that takes an end for them only at their beginning.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "lockstep/comm/network/patience.h"

namespace lockstep::comm {

class Alarm {
 public:
  Alarm() = default;
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Calls `ring` once the patience is over, on the alarm's thread, and then again every 50 ms as long as the result
  // lives. `ring` neither throws nor uses the alarm. The patience and the alarm outlive the result. Any thread.
  [[nodiscard]] std::shared_ptr<void> set(const Patience& patience, std::function<void()> ring);

 private:
  struct Waiter {
    const Patience* patience;
    std::function<void()> ring;
  };

  void run();

  std::mutex mutex_;
  std::condition_variable news_;
  std::map<uint64_t, Waiter> waiters_;  // by number
  uint64_t next_ = 1;
  int64_t wakes_ns_ = 0;  // monotonic_ns() when the thread looks again
  bool ending_ = false;
  std::thread thread_;  // started with the first waiter
};

}  // namespace lockstep::comm
