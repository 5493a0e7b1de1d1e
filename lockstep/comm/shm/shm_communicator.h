// The backend for the ranks of one node: every rank reads and writes the other ranks' pools directly.
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

class ShmCommunicator final : public Communicator, private Progressable {
 public:
  struct Options {
    int rank = 0;  // the local rank
    int size = 1;  // at most kMaxLocalRanks
    std::chrono::milliseconds timeout{600'000};
    std::vector<int> world_ranks = {};                  // by local rank, for messages; empty: the local ranks
    std::function<void(const std::string&)> warn = {};  // gets each warning; default: it goes to the log
    std::string timeout_name = "the timeout";           // what the user sets it by, for messages
    NodeTransport* transport = nullptr;                 // reduces over other nodes as well; outlives this
  };

  // `pool` is this rank's pool, over memory.pools[rank]. It and `board` outlive this. Throws IoError, ConfigError.
  ShmCommunicator(Options options, const NodeMemory& memory, Pool& pool, Board* board)
      : ShmCommunicator(std::move(options), ShmMemory(memory), pool, board) {}
  ShmCommunicator(Options options, ShmMemory memory, Pool& pool, Board* board);
  // The memory of calls that are not complete on all ranks is kept to the end of the process.
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
  // Ends the calls of all ranks of the node, for which other nodes' ranks differ: they throw DesyncError with this
  // text.
  void tell_desync(const std::string& difference) noexcept { protocol_.node().abort(difference, /*is_desync=*/true); }

  // Sets Options::transport later, but before the first reduction.
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
  bool needs_polling() const override;

  ShmProtocol protocol_;
  PoolBlock own_segment_;  // a group's segment, on its first member
  bool is_group_ = false;
  NodeTransport* transport_ = nullptr;
  std::deque<std::shared_ptr<ShmCollective>> collectives_;  // under way, in the order of their calls
  std::deque<std::shared_ptr<ShmMessage>> messages_;
};

}  // namespace lockstep::comm
