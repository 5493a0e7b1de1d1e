// Rank 0's side of the handshake: it admits the ranks that connect, passes each the node's memory, and releases all of
// them together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/descriptor_passing.h"
#include "lockstep/base/error.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/rendezvous/handshake.h"
#include "lockstep/rendezvous/place/environment.h"

namespace lockstep::rendezvous {

// The ranks below `size` that are missing: their pids are not on the board yet.
std::vector<int> missing_ranks(const Board& board, int size);

// The text of the CommError for missing ranks: "rank 0: waited 3 s at tcp://… for ranks 2-3 of 4; …".
std::string missing_text(const Place& place, const std::vector<int>& missing, double seconds);

// One thread.
class HandshakeServer {
 public:
  // Serves the other ranks of the world of `place`, all of them on this node, at the socket `listener`
  // (listen_abstract). The arguments outlive this.
  HandshakeServer(const Place& place, const NodeMemory& memory, const Descriptor& listener);

  // Returns when all ranks have been admitted. A process of another user, or one that sends no valid Hello, gets
  // nothing. Throws CommError that names the ranks that are missing at the deadline or have died, ConfigError if a rank
  // describes another world; in both cases the caller calls give_up(). Throws what `check` throws, which it calls a few
  // times a second.
  void gather(
      const Deadline& deadline, const std::function<void()>& check = [] {});

  // Sends kGo to all ranks.
  void release();
  // Sends kGivenUp with this error to all processes that are connected now. Returns how many they are without those
  // that an earlier call has told.
  int give_up(const Error& error);

 private:
  struct Member {
    Descriptor connection;
    Credentials who;
  };

  void wait_for_event(const Deadline& deadline);
  void accept_connections();
  void receive_hellos();
  void check_members();
  void admit(int rank, Member member);
  void check_hello(const Hello& hello, const Credentials& who) const;
  bool complete() const;

  const Place& place_;
  const Descriptor& listener_;
  Mapping board_memory_;
  Board* board_;
  std::vector<int> descriptors_;
  std::vector<Member> pending_;  // connected but without a Hello so far, the oldest first
  std::vector<Member> told_;     // to whom kGivenUp was sent
  std::vector<Member> members_;  // admitted ranks, by rank; [0], this rank itself, has no connection
};

}  // namespace lockstep::rendezvous
