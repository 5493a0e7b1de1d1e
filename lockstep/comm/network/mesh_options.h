// What a network library is given to connect the ranks.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Store;
}

namespace lockstep::comm {

struct MeshOptions {
  int rank = 0;
  int size = 1;
  std::string interfaces = {};  // "eth0" or "eth0,eth1"; empty: the interface that reaches `towards`
  std::string towards = {};     // the rendezvous, a host name or address
  std::chrono::milliseconds timeout{600'000};
  c10::intrusive_ptr<c10d::Store> store =
      {};  // through which the ranks exchange addresses; its keys are the mesh's own
};

}  // namespace lockstep::comm
