// The mesh over MPI, for whatever fabric MPI drives: the plug-in liblockstep_mpi.so, which needs no libtorch.
#pragma once

#include "lockstep/comm/network/mesh.h"
#include "lockstep/comm/plugins/plugin.h"

namespace lockstep::comm {

inline constexpr PluginName kMpiPlugin{"mpi", "liblockstep_mpi.so",
                                       "build it where MPI's development files are, Debian: libopenmpi-dev"};

struct MpiOptions {
  int rank = 0;  // in the world; MPI may number its ranks otherwise
  int size = 1;
};

}  // namespace lockstep::comm

// The plug-in's entry point; the caller owns the mesh. A collective over all ranks, which mpirun or its like has
// started. Initialises MPI unless the program has. In that case the mesh's destructor finalises MPI, unless an exchange
// has failed: finalising would then wait for the peers. Throws ConfigError if MPI's ranks are not the world's, or if
// MPI was initialised for one thread.
extern "C" lockstep::comm::Mesh* lockstep_make_mpi_mesh(const lockstep::comm::MpiOptions& options);
