// Where a process stands in its world, read from the environment of whatever launched it. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::rendezvous {

// One rank's place. Ranks of one node have the local ranks 0 … local_size - 1.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node = -1;                  // the node's number, where the launcher says it
  std::string launcher = "none";  // "lockstep", "torchrun", "mpirun", "srun", "arguments" or "none"
  std::string rendezvous = {};    // tcp://host:port or file:///path, where ranks meet that share no launcher of ours
  bool launcher_hosts = false;    // the launcher serves the store at `rendezvous`: rank 0 is a client there, too
  std::string job = {};           // tells this launch from others that may use the same store: a job, an attempt
};

struct PlaceRequest {
  int rank = -1;  // -1: not said
  int size = -1;
  std::string init_method = "env://";
  int64_t parent = 0;  // the pid that started this process: stands for the job's id where a launcher gives none
};

using Lookup = std::function<std::optional<std::string>(const char* name)>;

// From the request where it says so, else from the environment: ours, torchrun's (RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), Open MPI's, MPICH's (PMI), Slurm's. Ranks whose launcher names no
// rendezvous get a port of this machine that is derived from the job. Throws ConfigError that names what is missing
// or contradicts itself.
Place find_place(const PlaceRequest& request, const Lookup& lookup);

}  // namespace lockstep::rendezvous
