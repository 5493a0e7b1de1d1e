// The environment variables of a rank: torchrun's, and those of our own workers.
#pragma once

#include <string>
#include <vector>

namespace lockstep::launch {

struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int master_port = 0;
  int threads = 1;            // several wait awake for a short time only, unless `base` says how they wait
  bool keep_threads = false;  // keep OMP_NUM_THREADS and MKL_NUM_THREADS if they are set already; else `threads` is a
                              // default, and LOCKSTEP_THREADS=auto says so
  std::string node_memory;    // the value of LOCKSTEP_NODE_MEMORY
  int run_lock = -1;          // the descriptor of the run folder's lock; -1: none
  int snapshots = -1;         // the descriptor of the memory for snapshots; -1: none
  int attempt = -1;           // the number of this attempt at the run, from 0; -1: there are none to count
  int max_restarts = 0;       // further attempts that may follow the first
  int columns = 0;            // the width of the terminal to which output goes; 0: no terminal
  bool plain = false;         // ask for no colours: a pseudo-terminal's output goes to log files too
  bool by_line = false;       // ask for standard output line by line: it goes to a pipe
};

// Returns `base`, a list of "NAME=value", with the rank's variables set.
std::vector<std::string> rank_environment(std::vector<std::string> base, const RankEnvironment& rank);

// Set, unset and look up a variable in a list of "NAME=value".
void set_variable(std::vector<std::string>& variables, const std::string& name, const std::string& value);
inline void set_variable(std::vector<std::string>& variables, const std::string& name, int value) {
  set_variable(variables, name, std::to_string(value));
}
void unset_variable(std::vector<std::string>& variables, const std::string& name);
bool has_variable(const std::vector<std::string>& variables, const std::string& name);

// This process's own environment.
std::vector<std::string> own_environment();

}  // namespace lockstep::launch
