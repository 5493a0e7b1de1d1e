// A process's place in its world, read from the environment that its launcher has set. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/rendezvous/place/layer.h"
#include "lockstep/rendezvous/place/place.h"
#include "lockstep/rendezvous/place/variables.h"

namespace lockstep::rendezvous {

// The program's own wishes for its place.
struct PlaceRequest {
  int rank = -1;                       // -1: from the environment
  int size = -1;                       // -1: from the environment
  std::string init_method = "env://";  // env://, tcp://host:port or file:///path
  int64_t parent = 0;                  // launcher_pid(); identifies a job to which the launcher gives no id
};

// Finds the place by the request, and, for what the request leaves open, by the environment: that of the innermost
// launcher whose variables are complete (layer.h has the order): ours, torchrun's, Paddle's, Open MPI's, MPICH's and
// Intel MPI's (PMI), PyTorchJob's, Slurm's, Kubeflow Trainer's or JobSet's. If the launcher names no rendezvous, it is
// a port of this machine, derived from the job. Throws ConfigError that names what is missing or contradictory.
Place find_place(const PlaceRequest& request, const Lookup& lookup);

// The pid of what started this rank: MPICH's process on this node, also where a script stands between, or else the
// parent.
int64_t launcher_pid();

// What the environment says, for people.
struct PlaceReport {
  std::optional<Place> place;  // nothing: `error` says why
  std::string error;
  int used = -1;              // the layer that counts; -1: none, or an error
  std::vector<Layer> layers;  // the innermost first
};
PlaceReport explain_place(const Lookup& lookup, int64_t parent);

}  // namespace lockstep::rendezvous
