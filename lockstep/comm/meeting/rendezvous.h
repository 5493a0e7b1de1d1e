// How ranks meet. Those of one node that no launcher of ours started: local rank 0 makes the node's memory, and the
// others take its descriptors over an abstract Unix socket, whose name they learn through c10d's store. Those of
// several nodes tell each other there where they are.
#pragma once

#include <chrono>

#include "lockstep/base/clock.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/comm/meeting/environment.h"
#include "lockstep/comm/meeting/meeting_store.h"
#include "lockstep/comm/meeting/rank_table.h"

namespace lockstep::comm {

// Meets the other ranks of a world of one node at place.meeting and returns the memory that all of them share. The
// peers' credentials are checked: a process of another user gets nothing. Throws CommError on a timeout (who is
// missing, where) and ConfigError if ranks disagree about the world.
NodeMemory meet(const Place& place, std::chrono::milliseconds timeout);

// Every rank's place, told through the store. Throws CommError that names who has not come until the deadline, and
// ConfigError, on all ranks, if they disagree about the world or two say that they are the same rank.
RankTable exchange_places(const Place& place, MeetingStore& store, const Deadline& deadline);

// As meet(), for the ranks of one of several nodes.
NodeMemory meet_on_node(const Place& place, const RankTable& table, MeetingStore& store, const Deadline& deadline);

}  // namespace lockstep::comm
