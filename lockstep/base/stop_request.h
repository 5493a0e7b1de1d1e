// The request to end a run that comes as signals, and which of them ask for it once more.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

#include "lockstep/base/clock.h"

namespace lockstep {

// One end may come as several signals: a terminal that is closed sends SIGHUP twice, a service manager SIGTERM and
// SIGHUP, timeout one to the program and one to its group. Who asks again does so a second later, and not by SIGHUP.
// Nor is it once more that a batch system ends what it has warned of its limit, by SIGUSR1 or SIGUSR2. Usable in a
// signal handler; one thread takes the signals, any may ask.
class StopRequest {
 public:
  static constexpr int64_t kOneRequestNs = 1'000'000'000;
  enum class Meaning { kFirst, kTheSame, kOnceMore };

  Meaning take(int signal, int64_t now_ns = monotonic_ns()) {
    const bool warns = signal == SIGUSR1 || signal == SIGUSR2;
    if (warns) return warned_.exchange(true) || asked_ns_.load() != 0 ? Meaning::kTheSame : Meaning::kFirst;
    int64_t asked_ns = 0;
    if (asked_ns_.compare_exchange_strong(asked_ns, now_ns))
      return warned_.load() ? Meaning::kTheSame : Meaning::kFirst;
    return signal == SIGHUP || now_ns - asked_ns < kOneRequestNs ? Meaning::kTheSame : Meaning::kOnceMore;
  }
  bool asked() const { return asked_ns_.load() != 0 || warned_.load(); }

 private:
  std::atomic<int64_t> asked_ns_ = 0;  // 0: not asked
  std::atomic<bool> warned_ = false;   // by SIGUSR1 or SIGUSR2
  static_assert(std::atomic<int64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
};

}  // namespace lockstep
