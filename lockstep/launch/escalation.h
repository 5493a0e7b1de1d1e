// The escalation that ends a rank after another one has failed. First it gets time to notice the failure by itself and
// report it, then SIGTERM asks it to end, then SIGKILL ends it.
#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <optional>

namespace lockstep::launch {

// A pure state machine; times are monotonic_ns().
class Escalation {
 public:
  // Begins at the first failure; later calls change nothing.
  void begin(int64_t now_ns) {
    if (!begun()) begun_ns_ = now_ns;
  }
  // Forgets the signals so far: all the times count from now.
  void begin_anew(int64_t now_ns) {
    begun_ns_ = now_ns;
    next_ = 0;
  }
  // Begins, or begins anew, with SIGTERM due at once, without the time to notice.
  void begin_asking(int64_t now_ns) { begin_anew(now_ns - kSteps[0].after_ms * kNsPerMs); }

  bool begun() const { return begun_ns_ != 0; }
  int64_t begun_ns() const { return begun_ns_; }

  // Milliseconds until the next signal is due; -1 if no signal is to come.
  int wait_ms(int64_t now_ns) const {
    if (!begun() || next_ == kSteps.size()) return -1;
    return static_cast<int>(std::max<int64_t>(0, kSteps[next_].after_ms - (now_ns - begun_ns_) / kNsPerMs));
  }

  // The next signal that is due, each only once; nothing if none is due.
  std::optional<int> due(int64_t now_ns) {
    if (wait_ms(now_ns) != 0) return std::nullopt;
    return kSteps[next_++].signal;
  }

 private:
  struct Step {
    int64_t after_ms;
    int signal;
  };
  static constexpr std::array kSteps = {Step{400, SIGTERM}, Step{700, SIGKILL}};
  static constexpr int64_t kNsPerMs = 1'000'000;

  int64_t begun_ns_ = 0;
  size_t next_ = 0;
};

}  // namespace lockstep::launch
