// Monotonic time: seconds as doubles for people, deadlines for waits.
#pragma once

#include <chrono>
#include <cstdint>

namespace lockstep {

// Nanoseconds of CLOCK_MONOTONIC, equal in all processes of a machine.
inline int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(monotonic_ns() - start_) * 1e-9; }
  void restart() { start_ = monotonic_ns(); }

 private:
  int64_t start_ = monotonic_ns();
};

// A point in time that a wait must not pass.
class Deadline {
 public:
  explicit Deadline(std::chrono::nanoseconds from_now) : end_(monotonic_ns() + from_now.count()) {}
  bool passed() const { return monotonic_ns() >= end_; }
  std::chrono::nanoseconds left() const { return std::chrono::nanoseconds(end_ - monotonic_ns()); }

 private:
  int64_t end_;
};

}  // namespace lockstep
