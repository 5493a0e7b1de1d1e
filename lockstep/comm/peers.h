// Whether the other ranks of this node are alive: what they say on the board, and the kernel's word (pidfd).
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep::comm {

class Peers {
 public:
  // Writes this process's pid to the board. `board` outlives this.
  Peers(Board* board, int self, int size);

  // Throws CommError if a peer has failed, died or finished, naming it; `waiting_for` says what this rank was at.
  void check(const std::string& waiting_for);

  // "(pid 812)", or nothing where the pid is not known.
  std::string pid_of(int rank) const;

  Board& board() const { return *board_; }
  BoardRank& self() const { return board_->ranks[static_cast<size_t>(self_)]; }

 private:
  bool gone(int rank);

  Board* board_;
  int self_;
  std::vector<Descriptor> pidfds_;  // opened at the first check
};

}  // namespace lockstep::comm
