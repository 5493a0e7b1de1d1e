// The mesh over Gloo: messages over TCP by the Gloo of libtorch, through c10d's ProcessGroupGloo.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <string>

#include "lockstep/comm/network/mesh.h"

namespace c10d {
class Store;
}

namespace lockstep::comm {

struct GlooOptions {
  int rank = 0;
  int size = 1;
  std::string interfaces = {};  // "eth0" or "eth0,eth1"; empty: the interface that reaches `towards`
  std::string towards = {};     // the rendezvous, a host name or address
  std::chrono::milliseconds timeout{600'000};
};

// Connects every rank with every other; with TORCH_GLOO_LAZY_INIT=1 two ranks connect at their first message. All ranks
// call it, and find each other through `store`. Throws ConfigError for an interface that this machine lacks, CommError
// if a rank is missing at the timeout.
std::unique_ptr<Mesh> make_gloo_mesh(const GlooOptions& options, c10::intrusive_ptr<c10d::Store> store);

}  // namespace lockstep::comm
