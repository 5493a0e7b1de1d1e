// The shared memory of one node's ranks: the board, the communicator's memory and one pool a rank. The launcher makes
// it and its workers inherit the descriptors through exec; it is gone with the last process that holds them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"

namespace lockstep {

struct NodeMemory {
  Descriptor board;               // holds a Board
  Descriptor comm;                // no size yet: local rank 0's communicator gives it one
  std::vector<Descriptor> pools;  // by local rank; no size yet: each owner gives its own one

  // Makes all of it, with a Board for `local_ranks` ranks. Throws IoError.
  static NodeMemory create(int local_ranks);

  // "3,4,5,6": board, comm, pools, as LOCKSTEP_NODE_MEMORY carries them to a worker.
  std::string to_env() const;
  // Takes over the descriptors that `value` lists. Throws ConfigError if they are not what it says.
  static NodeMemory from_env(const std::string& value);
};

}  // namespace lockstep
