// What the ranks of several nodes share for as long as they run: the store where they met, and who is where.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lockstep/base/board.h"
#include "lockstep/comm/meeting/meeting_store.h"
#include "lockstep/comm/meeting/rank_table.h"
#include "lockstep/comm/network/network_communicator.h"

namespace lockstep::comm {

struct Session {
  QuietC10d quiet;     // a store that goes with rank 0 is no news
  MeetingStore store;  // rank 0 serves it: it lives as long as the world
  RankTable table;
  int rank;

  // This node's ranks, by local rank.
  std::vector<int> node_ranks() const { return ranks_of_node(table, table.at(static_cast<size_t>(rank)).node); }
};

// Meets all ranks of the world at place.meeting, and tells them apart by node. Throws as exchange_places().
std::unique_ptr<Session> open_session(const Place& place, const Deadline& deadline);

struct NetworkOptions {
  std::string backend = "gloo";  // gloo or mpi
  std::string interfaces = {};   // for gloo; empty: GLOO_SOCKET_IFNAME, else the one that reaches the meeting place
  std::chrono::milliseconds timeout{600'000};
  Board* board = nullptr;  // this node's
};

// The interfaces that the option names, or GLOO_SOCKET_IFNAME; empty where neither does. Throws ConfigError for one
// that this machine lacks: asked before ranks meet, so that each says it and none waits for another.
std::string named_interfaces(const std::string& option);

// Connects this rank with the others; all ranks call it. Throws as make_gloo_mesh() or lockstep_make_mpi_mesh().
Network connect_network(const Session& session, const Place& place, const NetworkOptions& options);

// The group of all ranks on the network.
std::unique_ptr<NetworkCommunicator> world_of(const Network& network, const Session& session);

}  // namespace lockstep::comm
