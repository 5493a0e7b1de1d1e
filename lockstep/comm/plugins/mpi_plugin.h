// Messages over whatever fabric MPI drives: liblockstep_mpi.so, a plug-in that needs no libtorch.
#pragma once

#include "lockstep/comm/network/mesh.h"
#include "lockstep/comm/plugins/plugin.h"

namespace lockstep::comm {

inline constexpr PluginName kMpiPlugin{"mpi", "liblockstep_mpi.so",
                                       "build it where MPI's development files are, Debian: libopenmpi-dev"};

struct MpiOptions {
  int rank = 0;  // of the world; MPI may number its ranks otherwise
  int size = 1;
};

}  // namespace lockstep::comm

// The plug-in's entry; the caller owns what it returns. All ranks call it, started by mpirun or its like; it waits for
// all of them. Initialises MPI unless the program has, and then finalises it at the mesh's end, on the thread that ends
// it; not after an exchange has failed, for that would wait for the peers. Throws ConfigError if MPI's ranks are not
// the world's, or if it was started for one thread.
extern "C" lockstep::comm::Mesh* lockstep_make_mpi_mesh(const lockstep::comm::MpiOptions& options);
