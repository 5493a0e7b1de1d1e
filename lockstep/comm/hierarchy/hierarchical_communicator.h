// The hierarchical backend: shared memory within a node, a network between nodes. Each local rank carries its own slice
// of the data over the network.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/comm/network/network_communicator.h"
#include "lockstep/comm/network/network_transport.h"
#include "lockstep/comm/shm/shm_communicator.h"

namespace lockstep::comm {

class HierarchicalCommunicator final : public Communicator {
 public:
  // The arguments of the node's ShmCommunicator. The options' rank, size and transport are set here. Memory, pool and
  // board are this node's and outlive the communicator.
  struct Node {
    ShmCommunicator::Options options;
    const NodeMemory& memory;
    Pool& pool;
    Board* board;
  };
  // `world` connects all ranks of `table` over the network. A collective: all ranks construct theirs at once.
  HierarchicalCommunicator(std::unique_ptr<NetworkCommunicator> world, Network network, const RankTable& table,
                           Node node);

  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }
  const char* backend() const override { return "hierarchical"; }
  std::string describe() const override;
  bool shares(const at::Tensor& tensor) const override { return node_.shares(tensor); }
  void progress() override { node_.progress(); }
  void abort(const std::string& reason) noexcept override;

 protected:
  bool takes_leaves() const override { return true; }
  // Folds, all_reduces and large broadcasts go through both levels; all other calls use the network alone.
  std::shared_ptr<Work> begin(Call call) override;
  std::unique_ptr<Communicator> group(const std::vector<int>& members) override;

 private:
  std::shared_ptr<Work> broadcast(const Call& call);
  std::shared_ptr<Work> carry_out(Call call);

  std::shared_ptr<Watch> watch_;
  WatchGroup calls_;  // all ranks; numbers the calls over both levels
  uint64_t begun_ = 0;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<NetworkCommunicator> world_;
  NetworkTransport transport_;
  ShmCommunicator node_;
};

}  // namespace lockstep::comm
