// The state of the ranks of other nodes, slow, stopped or silent, as their heartbeats show it. A rank's neighbours are
// the other ranks of its node.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/comm/network/blocked_call.h"
#include "lockstep/comm/network/bulletin.h"
#include "lockstep/comm/rank_table.h"

namespace lockstep::comm {

// A rank's heartbeat.
struct Heartbeat {
  uint64_t count = 0;                       // its number among the rank's heartbeats, from 1
  std::vector<int> stopped = {};            // the neighbours that are stopped: these can't tell it themselves
  std::string doing = {};                   // what the rank is doing: "at step 12", "waiting at barrier"
  bool finished = false;                    // whether the rank has ended without an error
  int64_t age_ms = -1;                      // since the rank made progress (BoardRank::beat_ns), at most; -1: not known
  std::optional<BlockedCall> blocked = {};  // its blocking wait, once that lasts

  std::string encode() const;
  static Heartbeat decode(const std::string& text);
};

class PeerStates {
 public:
  // `board` is this node's, or null. It outlives this.
  PeerStates(RankTable table, int self, Board* board);

  // This rank's next heartbeat, encoded; `blocked` is its blocking wait.
  std::string own_heartbeat(const std::optional<BlockedCall>& blocked = {});
  // Its last one, encoded: the rank ends without an error.
  std::string last_heartbeat();

  // Reads the heartbeats of these ranks and of their neighbours.
  void read_heartbeats(Bulletin& bulletin, const std::vector<int>& ranks);

  // Looks for ranks that wait in a circle and hold up this one, whose blocking wait `own` is. Returns the text of that
  // circle; "" if there is none, or none for sure yet.
  std::string look_for_circle(Bulletin& bulletin, const BlockedCall& own);

  // monotonic_ns() without the time for which the launcher had this node's ranks stopped (Ctrl-Z). Any thread.
  int64_t running_ns() const;
  // A running_ns() since which each of these ranks has made progress, close to the last progress of the slowest; 0 if
  // none is known. Any thread.
  int64_t progress_of(const std::vector<int>& ranks) const;
  // This rank waits for ranks whose last progress was at this running_ns(): it counts as this rank's own, for whoever
  // waits for this rank.
  void pass_on(int64_t progress_ns);

  // A rank's state in words: "is alive, at step 12, waits for rank 3", "is stopped (SIGSTOP; …)", "has given no sign of
  // life for 12 s: …". Any thread.
  std::string describe(int rank) const;
  std::string called(int rank) const;  // "rank 2 (b)", with its host
  // Missing ranks and their states: " for ranks 2-3: rank 2 (b) …, rank 3 (b) …"; "" for none. Any thread.
  std::string describe(const std::vector<int>& missing) const;
  bool has_finished(int rank) const;  // any thread
  // What this node's board tells of the first of these ranks that has ended by a fault of its own: "rank 1 (pid 812)
  // died", "rank 1 failed: …"; "" if it tells of none. Any thread.
  std::string fate_here(const std::vector<int>& ranks) const;
  // Tells this node's board for which of its ranks this one gives up waiting. Any thread.
  void tell_missed(const std::vector<int>& ranks) const;
  bool is_here(int rank) const;  // on this node, which has a board; any thread
  // Tells the board that a thread of this rank's begins a wait, and that it has ended, with what begin_block() has
  // returned: the world's number. Any thread.
  uint32_t begin_block() const;
  void end_block(uint32_t world) const;

 private:
  struct Peer {
    Heartbeat heartbeat = {};
    int64_t changed_ns = 0;   // monotonic_ns() when this rank last saw a new heartbeat
    int64_t read_ns = 0;      // running_ns() at which it was not there yet
    int64_t progress_ns = 0;  // see progress_of()
    bool stopped = false;     // whether a neighbour has reported it as stopped
  };

  // The ranks that a neighbour has reported as stopped.
  std::vector<int> stopped() const;
  size_t local(int rank) const;

  RankTable table_;
  int self_;
  Board* board_;
  std::vector<int> neighbours_;  // this node's ranks, by local rank
  uint64_t heartbeats_ = 0;
  int64_t round_ns_ = 0;  // running_ns() at this rank's last heartbeat
  CircleCheck circle_;
  mutable std::mutex mutex_;
  std::map<int, Peer> peers_;
};

}  // namespace lockstep::comm
