// The end of the ranks that a failed one leaves behind: an Escalation for each. That of a rank that writes a
// checkpoint, by the board, begins anew when it has written it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/launch/escalation.h"

namespace lockstep::launch {

// A state machine of the board and of times, which are monotonic_ns().
class Stopping {
 public:
  static constexpr int64_t kPatienceNs = 60'000'000'000;

  // A rank that saves is waited for as long as it makes progress: for `patience_ns` since its last.
  explicit Stopping(int ranks, int64_t patience_ns = kPatienceNs)
      : ranks_(static_cast<size_t>(ranks)), saved_(ranks_.size()), spared_(ranks_.size()), patience_ns_(patience_ns) {}

  // Begins at the first failure; later calls change nothing.
  void begin(int64_t now_ns) {
    if (begun()) return;
    begun_ns_ = now_ns;
    for (Escalation& each : ranks_) each.begin(now_ns);
  }
  // Begins, or begins anew, with SIGTERM due at once, also to a rank that saves: the ranks' owner wants it so.
  void begin_asking(int64_t now_ns) {
    patience_ns_ = 0;
    if (!begun()) begun_ns_ = now_ns;
    std::fill(saved_.begin(), saved_.end(), 0);
    for (Escalation& each : ranks_) each.begin_asking(now_ns);
  }
  // All ranks have been stopped until now (Ctrl-Z): what has begun begins anew, and no rank's last progress is older.
  void resumed(int64_t now_ns) {
    if (!begun()) return;
    resumed_ns_ = now_ns;
    for (Escalation& each : ranks_) each.begin_anew(now_ns);
  }

  // Whether the rank has got time to save.
  bool has_spared(size_t rank) const { return spared_[rank] != 0; }

  bool begun() const { return begun_ns_ != 0; }

  // Milliseconds until act() is to be called; -1 if no signal is to come.
  int wait_ms(int64_t now_ns) const {
    int least = -1;
    for (const Escalation& each : ranks_) {
      const int wait = each.wait_ms(now_ns);
      if (wait >= 0) least = least < 0 ? wait : std::min(least, wait);
    }
    return least;
  }

  // Calls `send(rank, signal)` for each signal that is due, or `spare(rank)` where that rank saves.
  template <typename Send, typename Spare>
  void act(const Board& board, int64_t now_ns, const Send& send, const Spare& spare) {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      while (ranks_[rank].wait_ms(now_ns) == 0) {
        const bool saves = is_spared(board.ranks[rank], now_ns);
        const bool had_saved = std::exchange(saved_[rank], saves);
        if (!saves && !had_saved) {
          send(rank, *ranks_[rank].due(now_ns));
          continue;
        }
        ranks_[rank].begin_anew(now_ns);
        if (!saves) continue;
        spared_[rank] = true;
        spare(rank);
      }
    }
  }

 private:
  bool is_spared(const BoardRank& rank, int64_t now_ns) const {
    if (patience_ns_ == 0) return false;  // however late its last progress is
    const int64_t progress_ns = std::max({begun_ns_, resumed_ns_, rank.beat_ns.load()});
    return rank.saving.load() != 0 && now_ns - progress_ns < patience_ns_;
  }

  std::vector<Escalation> ranks_;
  std::vector<char> saved_;   // whether the rank saved when it was last looked at
  std::vector<char> spared_;  // whether it did at any time
  int64_t patience_ns_;
  int64_t begun_ns_ = 0;
  int64_t resumed_ns_ = 0;
};

}  // namespace lockstep::launch
