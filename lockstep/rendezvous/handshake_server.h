// Rank 0's side of the handshake: takes in the ranks that come, hands each the node's memory, and lets all go together.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/rendezvous/descriptor_passing.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/rendezvous/handshake.h"

namespace lockstep::rendezvous {

// The ranks whose pids are not on the board: who has not come.
std::vector<int> missing_ranks(const Board& board, int size);

// "rank 0: waited 3 s at tcp://… for ranks 2-3 of 4; …"
std::string missing_text(const Place& place, const std::vector<int>& missing, double seconds);

class HandshakeServer {
 public:
  // Listens at `listener` (listen_abstract) for the other ranks of `place`. All outlive this.
  HandshakeServer(const Place& place, const NodeMemory& memory, const Descriptor& listener);

  // Returns when all ranks are there. Who says that it is no rank of ours, is another user's, or says nothing at all,
  // gets nothing. Throws CommError that names who is missing at the deadline or went away, ConfigError if a rank sees
  // another world; in both cases give_up() is left to the caller.
  void gather(const Deadline& deadline);

  // Lets all go.
  void release();
  // Tells all who are there why there is no world.
  void give_up(const Error& error);

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
  std::vector<Member> pending_;  // connected, nothing said yet; the oldest first
  std::vector<Member> members_;  // by rank; [0], this rank itself, has no connection
};

}  // namespace lockstep::rendezvous
