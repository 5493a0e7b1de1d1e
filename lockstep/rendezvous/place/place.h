// A rank's place in its world.
#pragma once

#include <string>

namespace lockstep::rendezvous {

// The ranks of one node have the local ranks 0 … local_size - 1.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node = -1;                  // the node's number; -1 if the launcher gives none
  std::string launcher = "none";  // "lockstep", "torchrun", "paddle", "mpirun", "srun", "arguments" or "none"; or one
                                  // that starts a process a node: "PyTorchJob", "Kubeflow Trainer" or "JobSet"
  std::string rendezvous = {};    // tcp://host:port or file:///path, for ranks that our launcher has not started
  bool launcher_hosts = false;    // whether the launcher serves the store at `rendezvous`; rank 0 is then a client too
  std::string job = {};           // identifies this launch (job and attempt) among others that use the same store
  int program = 1;                // of this launch: which program of its command, one after the other, this is
  int gpu = -1;                   // the launcher's choice among the GPUs that this rank sees; -1: it leaves it open
};

}  // namespace lockstep::rendezvous
