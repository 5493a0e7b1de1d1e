// A process's place in its world, read from the environment that its launcher has set. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::rendezvous {

// A rank's place in its world. The ranks of one node have the local ranks 0 … local_size - 1.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node = -1;                  // the node's number; -1 if the launcher gives none
  std::string launcher = "none";  // "lockstep", "torchrun", "mpirun", "srun", "arguments" or "none"
  std::string rendezvous = {};    // tcp://host:port or file:///path, for ranks that our launcher has not started
  bool launcher_hosts = false;    // whether the launcher serves the store at `rendezvous`; rank 0 is then a client too
  std::string job = {};           // identifies this launch (job and attempt) among others that use the same store
};

// The program's own wishes for its place.
struct PlaceRequest {
  int rank = -1;                       // -1: from the environment
  int size = -1;                       // -1: from the environment
  std::string init_method = "env://";  // env://, tcp://host:port or file:///path
  int64_t parent = 0;  // the pid of the parent process; identifies a job to which the launcher gives no id
};

// Looks a variable up; nothing if it is unset.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

// Finds the place by the request, and, for what the request leaves open, by the environment: ours, torchrun's (RANK,
// WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), Open MPI's, MPICH's (PMI) or Slurm's. If the
// launcher names no rendezvous, it is a port of this machine, derived from the job. Throws ConfigError that names what
// is missing or contradictory.
Place find_place(const PlaceRequest& request, const Lookup& lookup);

}  // namespace lockstep::rendezvous
