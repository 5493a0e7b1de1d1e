// A rank that takes longer for its own part of a step than the others do, so that they wait for it. A state machine of
// samples and times, which are monotonic_ns().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/launch/watch/rank_sample.h"

namespace lockstep::launch {

class StragglerWatch {
 public:
  static constexpr double kFactor = 1.5;               // times the others' median
  static constexpr uint64_t kSteps = 20;               // the fewest of a window
  static constexpr int64_t kWindowNs = 5'000'000'000;  // and the shortest one: a shared machine is uneven for a moment
  static constexpr int kWindows = 2;                   // in a row

  struct Straggler {
    int rank = 0;           // the index of its sample
    double step_s = 0;      // seconds of its own part of a step: all of it but waiting for other ranks
    double others_s = 0;    // the others' median
    double data_share = 0;  // of its step's time: waiting for the loader, for other ranks
    double wait_share = 0;
  };

  // Takes a look, a few times a second. Returns a straggler once; the same rank again only after a window in which it
  // was none.
  std::optional<Straggler> look(std::span<const RankSample> ranks, int64_t now_ns);
  // All ranks have been stopped until now (Ctrl-Z): the window begins anew.
  void resumed() { begun_ns_ = 0; }

 private:
  void begin(std::span<const RankSample> ranks, int64_t now_ns);

  std::vector<RankSample> first_;  // the window's
  int64_t begun_ns_ = 0;           // 0: there is none
  int suspect_ = -1;               // of the last windows
  int windows_ = 0;                // in a row that had it
};

}  // namespace lockstep::launch
