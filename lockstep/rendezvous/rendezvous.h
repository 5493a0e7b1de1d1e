// The rendezvous of ranks that our launcher has not started. On each node local rank 0 creates the node's memory, and
// the other ranks receive its descriptors over an abstract Unix socket, whose name they find in c10d's store. Ranks of
// several nodes exchange their places through that store first.
#pragma once

#include <chrono>

#include "lockstep/base/clock.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/comm/rank_table.h"
#include "lockstep/rendezvous/place/environment.h"
#include "lockstep/rendezvous/store.h"

namespace lockstep::rendezvous {

// Shares one node's memory among all ranks of a world of one node, which find each other at place.rendezvous. Every
// rank calls it. The peers' credentials are checked: a process of another user gets nothing. Throws CommError at the
// timeout, which says which ranks are missing and where, and ConfigError if ranks disagree about the world.
NodeMemory share_node_memory(const Place& place, std::chrono::milliseconds timeout);

// Exchanges the ranks' places through the store. Every rank calls it. Throws CommError that names the ranks that are
// missing at the deadline, and ConfigError, on all ranks, if they disagree about the world or two claim the same rank.
comm::RankTable exchange_places(const Place& place, Store& store, const Deadline& deadline);

// As the first function, among the ranks of one of several nodes.
NodeMemory share_node_memory(const Place& place, const comm::RankTable& table, Store& store, const Deadline& deadline);

}  // namespace lockstep::rendezvous
