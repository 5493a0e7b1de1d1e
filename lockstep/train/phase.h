// What a rank is at between its steps, for the ranks that wait for it: the phase's name and signs of its progress.
#pragma once

#include <string>

#include "lockstep/base/board.h"
#include "lockstep/base/clock.h"

namespace lockstep::train {

// Tells the board that the rank has made progress: who waits for it goes on waiting.
inline void beat(BoardRank& self) { self.beat_ns.store(monotonic_ns(), std::memory_order_relaxed); }

// A phase that lasts as long as the object, named on the board: "evaluating at step 500". Thereafter the rank computes.
class Phase {
 public:
  Phase(BoardRank& self, const std::string& name) : self_(self) {
    beat(self_);
    self_.doing.set(name);
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  ~Phase() {
    beat(self_);
    self_.doing.set("");
  }

 private:
  BoardRank& self_;
};

}  // namespace lockstep::train
