// Which backend serves a world: the one place to add another.
#pragma once

#include <memory>
#include <string>

#include "lockstep/base/board.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/meeting/session.h"
#include "lockstep/comm/memory/pool.h"
#include "lockstep/comm/world.h"

namespace lockstep::comm {

// Whether ranks meet in a store and are joined by a network.
bool needs_network(const std::string& backend);

// What a rank has of its node and, if a network joins it with others, of its world.
struct RankParts {
  const Place& place;
  const NodeMemory& memory;
  Pool& pool;
  Board* board;
  const Session* session;
};

// The communicator of options.backend. Called by all ranks at once. Throws ConfigError, CommError.
std::unique_ptr<Communicator> make_communicator(const RankParts& parts, const WorldOptions& options);

}  // namespace lockstep::comm
