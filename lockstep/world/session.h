// What the ranks of several nodes share for as long as they run: the store where they met, and who is where.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/comm/network/network_communicator.h"
#include "lockstep/comm/quiet_c10d.h"
#include "lockstep/comm/rank_table.h"
#include "lockstep/rendezvous/store.h"

namespace lockstep {

struct Session {
  comm::QuietC10d quiet;    // silences c10d when the store ends with rank 0
  rendezvous::Store store;  // rank 0 serves it: it lives as long as the world
  comm::RankTable table;
  int rank;

  int size() const { return static_cast<int>(table.size()); }
  // This node's ranks, by local rank.
  std::vector<int> node_ranks() const { return comm::ranks_of_node(table, table.at(static_cast<size_t>(rank)).node); }
};

// Meets all ranks of the world at place.rendezvous, and tells them apart by node. Throws as exchange_places().
std::unique_ptr<Session> open_session(const rendezvous::Place& place, const Deadline& deadline);

// The interfaces that the option names, or GLOO_SOCKET_IFNAME; empty where neither does. Throws ConfigError for one
// that this machine lacks: asked before ranks meet, so that each says it and none waits for another.
std::string named_interfaces(const std::string& option);

// The named interfaces, else, where the way to the rendezvous is this machine's loopback though ranks are on other
// nodes, the first that leads out. Empty: whichever leads to the rendezvous.
std::string interfaces_for(const Session& session, const rendezvous::Place& place, const std::string& option);

// The host of the rendezvous; "localhost" for a file.
std::string rendezvous_host(const rendezvous::Place& place);

// Connects this rank with the others by the mesh that `make_mesh` gives; all ranks call it. `board` is this node's, or
// nullptr. Throws as make_mesh does, and CommError.
comm::Network connect_network(const Session& session, const std::function<std::unique_ptr<comm::Mesh>()>& make_mesh,
                              std::chrono::milliseconds timeout, Board* board);

// The group of all ranks on the network.
std::unique_ptr<comm::NetworkCommunicator> world_group(const comm::Network& network, const Session& session);

}  // namespace lockstep
