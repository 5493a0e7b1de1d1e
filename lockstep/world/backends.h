// The backends by name, and the choice among them for a world.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/board.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/memory/pool.h"
#include "lockstep/comm/plugins/plugin.h"
#include "lockstep/world/session.h"
#include "lockstep/world/world.h"

namespace lockstep {

// The parts from which a backend makes its communicator. All of them outlive it.
struct BackendParts {
  const rendezvous::Place& place;
  const NodeMemory& memory;
  comm::Pool& pool;
  Board* board;
  const Session* session;  // nullptr where the backend needs no network
};

struct Backend {
  // The largest world that the backend can serve.
  enum class Reach {
    kOneRank,
    kOneNode,  // over shared memory
    kNetwork,  // any number of nodes; the ranks have a Session
  };

  std::string_view name;
  Reach reach;
  // A function of a plug-in.
  struct Entry {
    comm::PluginName plugin;
    const char* function;
  };

  bool chooses_interfaces;  // whether it heeds WorldOptions::interfaces
  bool keeps_calls;         // whether its calls are counted in the node's memory, which serves one program then
  const Entry* entry;       // of the plug-in that it opens; nullptr for none
  // Makes the communicator. All ranks call it at once. Throws ConfigError, CommError.
  std::unique_ptr<comm::Communicator> (*make)(const Backend& self, const BackendParts& parts,
                                              const WorldOptions& options);
};

// All backends, plug-ins included. Whether a plug-in is installed shows only when it is opened.
std::span<const Backend> backends();

// The backend `wanted`; "auto" stands for single, shm (one node) or hierarchical (several nodes). Throws ConfigError if
// it does not exist or can't serve the world of `place`.
const Backend& choose_backend(const std::string& wanted, const rendezvous::Place& place);

// choose_backend() of `options`. Opens its plug-in for the rest of the process. Throws ConfigError also if this machine
// lacks the plug-in or a named interface.
const Backend& usable_backend(const InitOptions& options, const rendezvous::Place& place);

// Makes the communicator of options.backend, one of backends(). All ranks call it at once.
// Throws ConfigError, CommError.
std::unique_ptr<comm::Communicator> make_communicator(const BackendParts& parts, const WorldOptions& options);

}  // namespace lockstep
