// How ranks meet. Those of one node that no launcher of ours started: local rank 0 makes the node's memory, and the
// others take its descriptors over an abstract Unix socket, whose name they learn through c10d's store. Those of
// several nodes tell each other there where they are.
#pragma once

#include <chrono>

#include "lockstep/base/clock.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/comm/rank_table.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/rendezvous/store.h"

namespace lockstep::rendezvous {

// Meets the other ranks of a world of one node at place.rendezvous and returns the memory that all of them share. The
// peers' credentials are checked: a process of another user gets nothing. Throws CommError on a timeout (who is
// missing, where) and ConfigError if ranks disagree about the world.
NodeMemory share_node_memory(const Place& place, std::chrono::milliseconds timeout);

// Every rank's place, told through the store. Throws CommError that names who has not come until the deadline, and
// ConfigError, on all ranks, if they disagree about the world or two say that they are the same rank.
comm::RankTable exchange_places(const Place& place, Store& store, const Deadline& deadline);

// As above, for the ranks of one of several nodes.
NodeMemory share_node_memory(const Place& place, const comm::RankTable& table, Store& store, const Deadline& deadline);

}  // namespace lockstep::rendezvous
