// The state of the other ranks of this node, from their entries on the board and from the kernel (pidfd, /proc).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep::comm {

// Ranks are local ranks, which number the entries of the board. One thread.
class Peers {
 public:
  // Writes this process's pid to the board, which outlives this. `world_ranks`, by local rank, are the ranks that
  // messages show; empty: the local ranks.
  Peers(Board* board, int self, int size, std::vector<int> world_ranks = {});

  // Throws CommError that names the rank if one of `awaited` has failed, died or finished. `at` is the call in which
  // this rank waits.
  void check(std::span<const int> awaited, const std::string& at);

  // monotonic_ns() when the peer last said that it made progress.
  int64_t beat_of(int rank) const { return board_->ranks[static_cast<size_t>(rank)].beat_ns.load(); }

  // A peer's state in words: "rank 3 (pid 812) is stopped (SIGSTOP; kill -CONT 812)", "rank 2 (pid 811) is alive, at
  // step 17, waiting at barrier". A program that counts no steps is at none.
  std::string describe(int rank) const;

  const std::vector<int>& world_ranks() const { return world_ranks_; }
  // The rank that messages show.
  int world_rank_of(int rank) const { return world_ranks_[static_cast<size_t>(rank)]; }
  // " (pid 812)", or "" if the pid is not known.
  std::string pid_of(int rank) const;

  Board& board() const { return *board_; }
  BoardRank& self() const { return board_->ranks[static_cast<size_t>(self_)]; }

 private:
  bool gone(int rank);
  std::string called(int rank) const;  // "rank 3 (pid 812)"

  Board* board_;
  int self_;
  std::vector<int> world_ranks_;
  uint32_t program_;                // of this rank's command: the world's (BoardRank::worlds)
  std::vector<int> pids_;           // by local rank, those that were seen last
  std::vector<Descriptor> pidfds_;  // of them
};

}  // namespace lockstep::comm
