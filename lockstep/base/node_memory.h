// The shared memory of one node's ranks: the board, the communicator's memory and one pool a rank. The launcher makes
// it and its workers inherit the descriptors through exec; it is gone with the last process that holds them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"

namespace lockstep {

struct NodeMemory {
  static constexpr size_t kCommBytes = size_t{1} << 20;

  Descriptor board;               // holds a Board
  Descriptor comm;                // kCommBytes of zeros, for the communicator
  std::vector<Descriptor> pools;  // by local rank; address space of twice the machine's memory each, none of it backed

  // Makes all of it, with a Board for `local_ranks` ranks. Throws IoError.
  static NodeMemory create(int local_ranks);

  // "3,4,5,6": board, comm, pools, as LOCKSTEP_NODE_MEMORY carries them to a worker.
  std::string to_env() const;
  // Takes over the descriptors that `value` lists. Throws ConfigError if they are not what it says.
  static NodeMemory from_env(const std::string& value);
  // The first descriptor that `value` lists, the board's, left to whoever takes them over. Throws as from_env.
  static int board_in(const std::string& value);
};

// Address space for one of a node's pools: twice the machine's memory, so that it can't run out of addresses before
// memory, as long as every rank can map all of them.
size_t pool_address_space(int local_ranks);

}  // namespace lockstep
