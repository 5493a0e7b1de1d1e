// The backends by name: what joins the ranks of a world, and which of them serves it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/board.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/memory/pool.h"
#include "lockstep/world/session.h"
#include "lockstep/world/world.h"

namespace lockstep {

// What a backend is made of. All of it outlives the communicator.
struct BackendParts {
  const rendezvous::Place& place;
  const NodeMemory& memory;
  comm::Pool& pool;
  Board* board;
  const Session* session;  // nullptr where the backend needs no network
};

struct Backend {
  enum class Reach {
    kOneRank,
    kOneNode,  // shared memory
    kNetwork,  // ranks meet in a store first, and have a Session
  };

  std::string_view name;
  Reach reach;
  bool chooses_interfaces;  // by WorldOptions::interfaces
  // Called by all ranks at once. Throws ConfigError, CommError.
  std::unique_ptr<comm::Communicator> (*make)(const BackendParts& parts, const WorldOptions& options);
};

// All of them. Which plug-ins this build has is known when one is opened.
std::span<const Backend> backends();

// The backend that serves the world: `wanted`, or for "auto" single, shm (one node) or hierarchical (several nodes).
// Throws ConfigError for one that does not exist or can't serve such a world.
const Backend& choose_backend(const std::string& wanted, const rendezvous::Place& place);

// The communicator of options.backend, one of backends(), with options.algorithm. Called by all ranks at once. Throws
// ConfigError, CommError.
std::unique_ptr<comm::Communicator> make_communicator(const BackendParts& parts, const WorldOptions& options);

}  // namespace lockstep
