// The mesh over Gloo: messages over TCP by the Gloo of libtorch, through c10d's ProcessGroupGloo.
#pragma once

#include <memory>

#include "lockstep/comm/network/mesh.h"
#include "lockstep/comm/network/mesh_options.h"

namespace lockstep::comm {

// Connects every rank with every other; with TORCH_GLOO_LAZY_INIT=1 two ranks connect at their first message. All ranks
// call it, and find each other through options.store. Throws ConfigError for an interface that this machine lacks,
// CommError if a rank is missing at the timeout.
std::unique_ptr<Mesh> make_gloo_mesh(const MeshOptions& options);

}  // namespace lockstep::comm
