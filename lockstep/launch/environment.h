// The environment of a rank: what torchrun sets, and what our own workers want besides.
#pragma once

#include <string>
#include <vector>

namespace lockstep::launch {

struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int master_port = 0;
  int threads = 1;
  bool keep_threads = false;  // where OMP_NUM_THREADS is set already, leave it
  std::string node_memory;    // LOCKSTEP_NODE_MEMORY
  int columns = 0;            // of the terminal that output goes to; 0: it goes to none
};

// `base` ("NAME=value") with the rank's variables set.
std::vector<std::string> rank_environment(std::vector<std::string> base, const RankEnvironment& rank);

// This process's own environment.
std::vector<std::string> own_environment();

// A TCP port of 127.0.0.1 that nobody listened on a moment ago. Throws IoError.
int free_port();

// The width of the terminal at `fd`; 0 if it is none.
int terminal_columns(int fd);

}  // namespace lockstep::launch
