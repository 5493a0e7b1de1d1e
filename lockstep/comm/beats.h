// The beats by which ranks see each other's progress (BoardRank::beat_ns).
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep::comm {

// Raises a rank's beat to `at_ns`, unless it is later already. A rank that waits has made the progress of those that it
// waits for, at the time when they made it: so those who wait for the rank wait for them, and ranks that wait for each
// other have none. Any thread.
inline void raise_beat(std::atomic<int64_t>& beat_ns, int64_t at_ns) {
  for (int64_t last = beat_ns.load(); last < at_ns && !beat_ns.compare_exchange_weak(last, at_ns);) {
  }
}

}  // namespace lockstep::comm
