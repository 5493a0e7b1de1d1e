// What the launcher sees of its ranks' progress by the board: ranks that stand still, and ones that hold up the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/launch/watch/stall_watch.h"
#include "lockstep/launch/watch/straggler_watch.h"

namespace lockstep::launch {

// One thread. Times are monotonic_ns().
class ProgressWatch {
 public:
  static constexpr int kLookMs = 500;  // between two looks

  // A stall of `timeout_ns` is a hang; 0: none is. `first_rank`: the world's number of local rank 0, for people. The
  // board outlives this.
  ProgressWatch(const Board& board, int64_t timeout_ns, int first_rank)
      : board_(board), timeout_ns_(timeout_ns), first_rank_(first_rank) {}

  struct Hang {
    int rank = 0;       // local
    std::string error;  // the rank's, as one line
  };
  struct Findings {
    std::vector<std::string> lines;  // for people
    std::vector<int> stacks;         // local ranks whose stacks are of interest
    std::optional<Hang> hang;        // for as long as it lasts
  };
  // `running`: by local rank, whether its process has not ended.
  Findings look(const std::vector<bool>& running, int64_t now_ns);
  // All ranks have been stopped until now (Ctrl-Z).
  void resumed(int64_t now_ns);

 private:
  std::string called(int rank) const;
  std::string stall_text(const StallWatch::Stall& stall, const std::vector<bool>& running, int64_t now_ns) const;

  const Board& board_;
  int64_t timeout_ns_;
  int first_rank_;
  StallWatch stalls_;
  StragglerWatch stragglers_;
};

}  // namespace lockstep::launch
