// What the board says of a rank's progress at one moment.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/process_state.h"

namespace lockstep::launch {

struct RankSample {
  bool running = false;        // its process has not ended
  uint64_t step = 0;           // the step being computed; 0: before the first
  uint64_t sequence = 0;       // collectives begun
  bool waiting = false;        // it waits for other ranks, or says so, and nobody has stopped its process
  int64_t beat_ns = 0;         // monotonic_ns() of its last progress
  int64_t reduce_wait_ns = 0;  // of all steps so far: waiting for other ranks
  int64_t data_wait_ns = 0;    // of all steps so far: waiting for the loader
};

// A rank that was stopped within a wait would never give up, whatever it says.
inline RankSample sample_of(const BoardRank& rank, bool running) {
  const bool waits = rank.blocked.load() != 0 || rank.doing.get().starts_with("waiting at ");
  return {.running = running && rank.state.load() == RankState::kRunning,
          .step = rank.step.load(),
          .sequence = rank.sequence.load(),
          .waiting = waits && !process_stopped(rank.pid.load()),
          .beat_ns = rank.beat_ns.load(),
          .reduce_wait_ns = rank.reduce_wait_ns.load(),
          .data_wait_ns = rank.data_wait_ns.load()};
}

}  // namespace lockstep::launch
