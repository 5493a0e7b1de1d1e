// The transport between nodes over a network: local rank l of every node exchanges slice l with local ranks l of the
// other nodes.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/comm/network/network_communicator.h"
#include "lockstep/comm/node_transport.h"
#include "lockstep/comm/rank_table.h"

namespace lockstep::comm {

class NetworkTransport final : public NodeTransport {
 public:
  // The transport of rank `rank` of `table`. The smallest node's number of ranks is the number of rails. Announces the
  // rail's group to the network's watch. A collective: all ranks construct theirs at once.
  NetworkTransport(Network network, const RankTable& table, int rank);

  const std::vector<std::vector<int>>& subtrees() const override { return subtrees_; }
  int rails() const override { return rails_; }
  int world_size() const override { return plan_.leaves; }
  std::shared_ptr<Work> join(const Call& call, std::vector<at::Tensor> partials) override;

 private:
  std::vector<std::vector<int>> subtrees_;
  int rails_;
  JoinPlan plan_;                              // by node
  std::unique_ptr<NetworkCommunicator> rail_;  // null if the rank carries no slice
};

}  // namespace lockstep::comm
