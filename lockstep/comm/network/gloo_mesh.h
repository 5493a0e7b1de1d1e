// Messages over TCP by Gloo: libtorch's own, through c10d's ProcessGroupGloo.
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
  std::string interfaces = {};  // "eth0" or "eth0,eth1"; empty: the one that reaches `towards`
  std::string towards = {};     // a host name or address: where the ranks meet
  std::chrono::milliseconds timeout{600'000};
};

// Connects every rank with every other (with TORCH_GLOO_LAZY_INIT=1 only when they first talk); all ranks call it. They
// find each other through `store`. Throws ConfigError for an interface that this machine lacks, CommError if not all
// have come until the timeout.
std::unique_ptr<Mesh> make_gloo_mesh(const GlooOptions& options, c10::intrusive_ptr<c10d::Store> store);

}  // namespace lockstep::comm
