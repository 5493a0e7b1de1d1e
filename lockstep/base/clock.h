// Monotonic time: stopwatches that count seconds, and deadlines for waits.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace lockstep {

// Nanoseconds of CLOCK_MONOTONIC, a clock that all processes of a machine share.
inline int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Nanoseconds of CLOCK_BOOTTIME, which goes on while the machine sleeps, as other machines' clocks do.
inline int64_t boot_ns() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Seconds since monotonic_ns() was `ns`, rounded to a tenth for messages.
inline double seconds_since(int64_t ns) { return std::round(static_cast<double>(monotonic_ns() - ns) * 1e-8) / 10; }

// Measures the seconds since its construction or restart().
class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(monotonic_ns() - start_) * 1e-9; }
  void restart() { start_ = monotonic_ns(); }

 private:
  int64_t start_ = monotonic_ns();
};

// The longest wait. Timeouts beyond it, as std::chrono::milliseconds::max(), count as this one, so that sums of times
// stay in range.
constexpr std::chrono::hours kLongestWait{24 * 365 * 10};

// The time, or kLongestWait if that is shorter.
template <typename Rep, typename Period>
constexpr std::chrono::duration<Rep, Period> bounded(std::chrono::duration<Rep, Period> time) {
  constexpr auto most = std::chrono::duration_cast<std::chrono::duration<Rep, Period>>(kLongestWait);
  return time < most ? time : most;
}

// A point in time that a wait must not pass.
class Deadline {
 public:
  template <typename Rep, typename Period>
  explicit Deadline(std::chrono::duration<Rep, Period> from_now)
      : end_(monotonic_ns() + std::chrono::nanoseconds(bounded(from_now)).count()) {}
  bool passed() const { return monotonic_ns() >= end_; }
  std::chrono::nanoseconds left() const { return std::chrono::nanoseconds(end_ - monotonic_ns()); }
  // The time left in milliseconds, at least one: some libraries take 0 for no limit.
  std::chrono::milliseconds left_ms() const {
    return std::max(std::chrono::milliseconds(1), std::chrono::duration_cast<std::chrono::milliseconds>(left()));
  }

 private:
  int64_t end_;
};

}  // namespace lockstep
