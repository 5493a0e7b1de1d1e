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
  // Before the first step a stall is a hang after this time, or `timeout_ns` if that is longer: data may be looked
  // through for as long as other ranks wait for it (once(), world/once.h).
  static constexpr int64_t kStartNs = 3'600'000'000'000;

  // A stall of `timeout_ns` is a hang; 0: none is. `first_rank`: the world's number of local rank 0, for people.
  // `world_size`: of ranks on all nodes. The board outlives this.
  ProgressWatch(const Board& board, int64_t timeout_ns, int first_rank, int world_size)
      : board_(board), timeout_ns_(timeout_ns), first_rank_(first_rank), world_size_(world_size) {}

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
  // The rank for which others have given up waiting (BoardRank::missed); if that waits itself, who stands still by
  // itself. Nothing if there is none here: it has ended, saves, or is on another node.
  std::optional<Hang> waited_for(const std::vector<bool>& running, int64_t now_ns) const;
  // The rank that ranks of other nodes have given up waiting for: one that has stood still by itself for `timeout_ns`.
  std::optional<Hang> given_up_elsewhere(const std::vector<bool>& running, int64_t now_ns) const;
  // All ranks have been stopped until now (Ctrl-Z).
  void resumed(int64_t now_ns);

 private:
  std::vector<bool> ended(const std::vector<bool>& running) const;
  int64_t progress_of_waiting(uint64_t missed, const std::vector<bool>& ended) const;
  std::string called(int rank) const;
  Hang hang_of(int rank, int64_t since_ns, int64_t now_ns, const char* by) const;
  int64_t still_since_start(const std::vector<RankSample>& samples, const std::vector<bool>& running, int64_t now_ns);
  std::string slow_start_text(int64_t still_ns, const std::vector<bool>& running);
  std::optional<Hang> hung_start(int64_t still_ns, const std::vector<RankSample>& samples,
                                 const std::vector<bool>& running, int64_t now_ns) const;
  std::string stall_text(const StallWatch::Stall& stall, const std::vector<bool>& running, int64_t now_ns) const;

  const Board& board_;
  int64_t timeout_ns_;
  int first_rank_;
  int world_size_;
  int64_t resumed_ns_ = 0;
  int64_t began_ns_ = 0;                              // the first look; 0: it has not been
  int64_t start_patience_ns_ = StallWatch::kFirstNs;  // twice as long after each warning
  bool has_begun_ = false;                            // there has been a first step
  StallWatch stalls_;
  StragglerWatch stragglers_;
};

}  // namespace lockstep::launch
