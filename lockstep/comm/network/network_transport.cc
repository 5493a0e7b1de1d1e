#include "lockstep/comm/network/network_transport.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

// The maximal subtrees of the world's fold tree that node `node` holds.
std::vector<Subtree> holding_of(const RankTable& table, int node) {
  std::vector<bool> owned;
  for (const RankPlace& place : table) owned.push_back(place.node == node);
  return maximal_subtrees(owned);
}

}  // namespace

NetworkTransport::NetworkTransport(Network network, const RankTable& table, int rank)
    : rails_(static_cast<int>(table.size())), plan_{.leaves = static_cast<int>(table.size()), .holdings = {}} {
  const RankPlace& own = table.at(static_cast<size_t>(rank));
  std::vector<int> rail;
  for (int node = 0; node < node_count(table); ++node) {
    const std::vector<int> ranks = ranks_of_node(table, node);
    rails_ = std::min(rails_, static_cast<int>(ranks.size()));
    plan_.holdings.push_back(holding_of(table, node));
    if (own.local_rank < std::ssize(ranks)) rail.push_back(ranks[static_cast<size_t>(own.local_rank)]);
  }
  for (const Subtree& subtree : plan_.holdings[static_cast<size_t>(own.node)]) {
    subtrees_.emplace_back();
    for (int k = 0; k < subtree.count; ++k) {
      subtrees_.back().push_back(table[static_cast<size_t>(subtree.first + k)].local_rank);
    }
  }
  if (own.local_rank >= rails_) return;
  const std::string name = cat("rail", own.local_rank);
  network.watch->announce({name, rail});
  rail_ = std::make_unique<NetworkCommunicator>(std::move(network), std::move(rail), name, GroupNumbers::kRail);
}

std::shared_ptr<Work> NetworkTransport::join(const Call& call, std::vector<at::Tensor> partials) {
  if (!rail_) throw BugError("transport: this rank carries no slice");
  return rail_->join(call, plan_, std::move(partials));
}

}  // namespace lockstep::comm
