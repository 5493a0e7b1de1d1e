// What a network library is given to connect the ranks.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace lockstep::comm {

struct MeshOptions {
  int rank = 0;
  int size = 1;
  std::string interfaces = {};  // "eth0" or "eth0,eth1"; empty: the interface that reaches `towards`
  std::string towards = {};     // the rendezvous, a host name or address
  std::chrono::milliseconds timeout{600'000};
  // The ranks exchange addresses through it; its keys are the mesh's own.
  c10::intrusive_ptr<c10d::Store> store = {};
};

}  // namespace lockstep::comm
