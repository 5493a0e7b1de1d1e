// Ranks that stand still: none of them makes progress, and the one that the others wait for is known by the collectives
// that it has not begun. A state machine of samples and times, which are monotonic_ns().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/launch/watch/rank_sample.h"

namespace lockstep::launch {

class StallWatch {
 public:
  static constexpr int64_t kLeastNs = 10'000'000'000;
  static constexpr int64_t kFirstNs = 60'000'000'000;  // before a step's time is known
  static constexpr int kSteps = 5;  // as many of the longest steps are waited for, the 99th percentile

  struct Stall {
    int64_t since_ns = 0;       // the last progress of a suspect
    std::vector<int> suspects;  // indices of the samples; those that the others wait for
    bool is_hang = false;       // it is as long as `timeout_ns`, and some suspect waits for no other rank
    bool is_new = false;        // it has not been returned before
  };

  // Takes a look, a few times a second. `timeout_ns` 0: no stall is a hang. Returns the stall for as long as it lasts:
  // some rank has made no progress for patience_ns(). Nothing before all running ranks have begun their first step.
  // `first_step_ns` is when that ended; 0: not yet, or unknown.
  std::optional<Stall> look(std::span<const RankSample> ranks, int64_t now_ns, int64_t first_step_ns = 0,
                            int64_t timeout_ns = 0);
  // All ranks have been stopped until now (Ctrl-Z).
  void resumed(int64_t now_ns) { floor_ns_ = now_ns; }

  // kSteps times the 99th percentile of the last steps' times; kFirstNs before any is known.
  int64_t long_steps_ns() const;
  // kFirstNs, then the larger of kLeastNs and kSteps times the 99th percentile of the last steps' times.
  int64_t patience_ns() const;

 private:
  static constexpr size_t kRemembered = 300;
  struct Seen {
    uint64_t step = 0, sequence = 0;
    int64_t progress_ns = 0;
  };
  void note_steps(uint64_t step, int64_t at_ns, int64_t first_step_ns);

  std::vector<Seen> seen_;
  std::vector<int64_t> step_ns_;  // of the last steps, a ring
  size_t next_ = 0;
  uint64_t last_step_ = 0;    // of the furthest rank
  int64_t last_step_ns_ = 0;  // when it had been reached
  int64_t floor_ns_ = 0;
  bool stalled_ = false;
};

}  // namespace lockstep::launch
