// Whether the other ranks of this node are alive: what they say on the board, and the kernel's word (pidfd, /proc).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep::comm {

// Ranks are numbered by their places on the board; messages name them as `world_ranks` does (empty: by place).
class Peers {
 public:
  // Writes this process's pid to the board. `board` outlives this.
  Peers(Board* board, int self, int size, std::vector<int> world_ranks = {});

  // Throws CommError if one of `awaited` has failed, died or finished, naming it; `at` says what this rank was at.
  void check(std::span<const int> awaited, const std::string& at);

  // How a peer is: "rank 3 (pid 812) is stopped (SIGSTOP; kill -CONT 812)", "rank 2 (pid 811) is alive, at step 17, …".
  std::string describe(int rank) const;

  int world_rank_of(int rank) const { return world_ranks_[static_cast<size_t>(rank)]; }
  // " (pid 812)", or nothing where the pid is not known.
  std::string pid_of(int rank) const;

  Board& board() const { return *board_; }
  BoardRank& self() const { return board_->ranks[static_cast<size_t>(self_)]; }

 private:
  bool gone(int rank);
  std::string called(int rank) const;  // "rank 3 (pid 812)"

  Board* board_;
  int self_;
  std::vector<int> world_ranks_;
  std::vector<Descriptor> pidfds_;  // opened at the first check
};

}  // namespace lockstep::comm
