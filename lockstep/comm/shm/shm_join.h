// A reduction over several nodes: each local rank reduces its slice within the node and hands it to the transport.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/comm/node_transport.h"
#include "lockstep/comm/shm/shm_reduce.h"

namespace lockstep::comm {

// One chunk of everything. Its slice is one of transport.rails(), and so is what this rank hands on; other ranks only
// wait.
class ShmJoin final : public ShmReduce {
 public:
  ShmJoin(ShmProtocol& protocol, const Call& call, NodeTransport& transport);

  bool needs_polling() const override { return join_ != nullptr && !delivered_; }
  // Later calls may reduce as soon as this one's join has begun.
  bool may_be_overtaken() const override { return begun_ || finished(); }

 private:
  // Once the node's ranks are all there it waits for the other nodes, whose messages have the timeout, say who is
  // missing and take a moment for it.
  std::vector<int> missing() const override { return begun_ ? std::vector<int>{} : ShmReduce::missing(); }
  std::chrono::nanoseconds grace() const override { return std::chrono::seconds(4); }

  bool reduce_chunk() override;
  void begin_join();
  void write_result();

  NodeTransport& transport_;
  Call call_;
  std::vector<at::Tensor> partials_;  // [elements of the slice], one for each of the node's subtrees
  std::shared_ptr<Work> join_;
  bool begun_ = false, delivered_ = false;
};

}  // namespace lockstep::comm
