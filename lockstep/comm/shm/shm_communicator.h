// The ranks of one node over shared memory: every rank works straight on the others' pools.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/node_transport.h"
#include "lockstep/comm/shm/shm_message.h"
#include "lockstep/comm/shm/shm_protocol.h"
#include "lockstep/comm/shm/shm_work.h"

namespace lockstep::comm {

class ShmCommunicator final : public Communicator, private Moving {
 public:
  struct Options {
    int rank = 0;  // on this node
    int size = 1;  // at most kMaxLocalRanks
    std::chrono::milliseconds timeout{600'000};
    std::vector<int> world_ranks = {};                  // how messages name the node's ranks; empty: as they are
    std::function<void(const std::string&)> warn = {};  // default: a warning in the log
    NodeTransport* transport = nullptr;                 // joins this node's reductions with other nodes'; outlives this
  };

  // `pool` is this rank's, on memory.pools[rank]; it and `board` outlive this. Throws IoError, ConfigError.
  ShmCommunicator(Options options, const NodeMemory& memory, Pool& pool, Board* board)
      : ShmCommunicator(std::move(options), ShmMemory(memory), pool, board) {}
  ShmCommunicator(Options options, ShmMemory memory, Pool& pool, Board* board);
  ~ShmCommunicator() override;
  ShmCommunicator(const ShmCommunicator&) = delete;
  ShmCommunicator& operator=(const ShmCommunicator&) = delete;

  int rank() const override { return protocol_.rank(); }
  int size() const override { return protocol_.size(); }
  const char* backend() const override { return "shm"; }
  bool shares(const at::Tensor& tensor) const override;
  bool has_views() const override { return true; }
  std::vector<at::Tensor> views_of(int root, const std::vector<at::Tensor>& mine) override;
  void progress() override { protocol_.node().advance(); }
  void abort(const std::string& reason) noexcept override { protocol_.node().abort(reason); }

  // As the option, for an transport that is made later; before the first reduction.
  void set_transport(NodeTransport* transport) { transport_ = transport; }

 protected:
  bool takes_leaves() const override { return true; }
  std::shared_ptr<Work> begin(Call call) override;
  std::unique_ptr<Communicator> group(const std::vector<int>& members) override;

 private:
  ShmCommunicator(ShmProtocol protocol, PoolBlock own_segment);

  std::shared_ptr<ShmCollective> collective(const Call& call);
  void wait_for_room(const Call& call);
  void advance() override;
  void advance_messages();
  bool polls() const override;

  ShmProtocol protocol_;
  PoolBlock own_segment_;  // of a group, on its first member
  bool is_group_ = false;
  NodeTransport* transport_ = nullptr;
  std::deque<std::shared_ptr<ShmCollective>> collectives_;  // under way, in the order of their calls
  std::deque<std::shared_ptr<ShmMessage>> messages_;
};

}  // namespace lockstep::comm
