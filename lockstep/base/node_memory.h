// The shared memory of one node's ranks: the board, the communicator's memory and one pool for each rank. The launcher
// creates it, and its workers inherit the descriptors through exec, which the programs that these start do not: a
// program that links this library closes them on exec before its main begins. The memory is freed with the last process
// that holds a descriptor.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"

namespace lockstep {

struct NodeMemory {
  static constexpr size_t kCommBytes = size_t{2} << 20;

  Descriptor board;               // holds a Board
  Descriptor comm;                // kCommBytes of zeros, for the communicator
  std::vector<Descriptor> pools;  // by local rank; pool_address_space() bytes each, none of them backed by memory

  // Creates all of it, with a Board for `local_ranks` ranks. Throws IoError.
  static NodeMemory create(int local_ranks);

  // The numbers of the descriptors, board, comm and pools, as LOCKSTEP_NODE_MEMORY passes them to a worker: "3,4,5,6".
  std::string to_env() const;
  // The same memory by descriptors of its own; those that `value` lists stay open, so that a process may try again.
  // Throws ConfigError unless all of them are open and there are at least three: a board's, a communicator's and a
  // pool's; IoError.
  static NodeMemory from_env(const std::string& value);
  // Leaves what the launcher has passed to this process to the program that it is about to become.
  static void keep_on_exec();
  // The board's descriptor, the first that `value` lists; it is not a copy. Throws as from_env().
  static int board_in(const std::string& value);
};

// Bytes of address space for one of a node's pools. It is twice the machine's memory, so that a pool can't run out of
// addresses before the machine runs out of memory, and less where a rank could not map all pools of the node.
size_t pool_address_space(int local_ranks);

}  // namespace lockstep
