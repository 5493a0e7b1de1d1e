// How ranks of one node meet that no launcher of ours started: local rank 0 makes the node's memory, and the others
// take its descriptors over an abstract Unix socket, whose name they learn through c10d's store.
#pragma once

#include <chrono>

#include "lockstep/base/node_memory.h"
#include "lockstep/comm/environment.h"

namespace lockstep::comm {

// Meets the other ranks of this node at place.meeting and returns the memory that all of them share. The peers'
// credentials are checked: a process of another user gets nothing. Throws CommError on a timeout (who is missing,
// where) and ConfigError if ranks disagree about the world.
NodeMemory meet(const Place& place, std::chrono::milliseconds timeout);

}  // namespace lockstep::comm
