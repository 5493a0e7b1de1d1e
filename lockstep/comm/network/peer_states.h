// How the ranks of other nodes are, by their signs of life: slow, stopped, or silent.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/comm/network/bulletin.h"
#include "lockstep/comm/rank_table.h"

namespace lockstep::comm {

// A sign of life.
struct Heartbeat {
  uint64_t count = 0;
  std::vector<int> stopped = {};  // ranks of the node that are stopped
  std::string doing = {};

  std::string encode() const;
  static Heartbeat decode(const std::string& text);
};

class PeerStates {
 public:
  // `board`, of this node, tells its ranks' pids and doings; may be null.
  PeerStates(RankTable table, int self, Board* board);

  // This rank's next sign of life. It tells which neighbours are stopped, too: they can't themselves.
  std::string own_heartbeat();

  // Reads the signs of life of these ranks, and of their neighbours, who may tell of them.
  void read_heartbeats(Bulletin& bulletin, const std::vector<int>& ranks);

  // Ranks that a neighbour of theirs has found stopped. Any thread.
  std::vector<int> stopped() const;
  // "is alive, at 'step 12'", "is stopped (SIGSTOP)", "has given no sign of life for 12 s: …". Any thread.
  std::string describe(int rank) const;

 private:
  struct Peer {
    Heartbeat heartbeat = {};
    int64_t changed_ns = 0;  // when it last changed, as seen from here
    bool stopped = false;    // as a neighbour of its says
  };

  RankTable table_;
  int self_;
  Board* board_;
  std::vector<int> neighbours_;  // this node's ranks, by local rank
  uint64_t heartbeats_ = 0;
  mutable std::mutex mutex_;
  std::map<int, Peer> peers_;
};

}  // namespace lockstep::comm
