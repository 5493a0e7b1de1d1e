// The session of a world that is connected by a network: the rendezvous store and the rank table, which the ranks share
// for as long as they run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/comm/network/network_communicator.h"
#include "lockstep/comm/quiet_c10d.h"
#include "lockstep/comm/rank_table.h"
#include "lockstep/rendezvous/store.h"
#include "lockstep/world/world.h"

namespace lockstep {

struct Session {
  comm::QuietC10d quiet;    // silences c10d's warnings when the store ends with rank 0
  rendezvous::Store store;  // as long as the world lives, for rank 0 may serve it
  comm::RankTable table;
  int rank;

  int size() const { return static_cast<int>(table.size()); }
  // This node's ranks, by local rank.
  std::vector<int> node_ranks() const { return comm::ranks_of_node(table, table.at(static_cast<size_t>(rank)).node); }
};

// Opens the store at place.rendezvous and exchanges the ranks' places. Every rank calls it. Throws as Store's
// constructor and exchange_places().
std::unique_ptr<Session> open_session(const rendezvous::Place& place, const Deadline& deadline);

// The interfaces that the option names or, if it is empty, GLOO_SOCKET_IFNAME; empty if neither names any. Throws
// ConfigError if this machine lacks one of them. To be called before the rendezvous, so that every rank with a wrong
// name fails by itself and none waits for another.
std::string named_interfaces(const std::string& option);

// The named interfaces. Without them, the first interface that is no loopback if other nodes have ranks but this
// machine reaches the rendezvous over its loopback. Otherwise empty, which stands for the interface that reaches the
// rendezvous.
std::string interfaces_for(const Session& session, const rendezvous::Place& place, const std::string& option);

// The host of the rendezvous, or "localhost" if it is a file.
std::string rendezvous_host(const rendezvous::Place& place);

// Connects this rank with the others over the mesh that `make_mesh` makes, and starts the watch. All ranks call it.
// `board` is this node's, or null. Throws CommError, and what make_mesh throws.
comm::Network connect_network(const Session& session, const std::function<std::unique_ptr<comm::Mesh>()>& make_mesh,
                              const WorldOptions& options, Board* board);

// The communicator of all ranks over the network.
std::unique_ptr<comm::NetworkCommunicator> world_group(const comm::Network& network, const Session& session);

}  // namespace lockstep
