// A reduction over several nodes: each local rank reduces its slice within the node, hands it to the transport, and
// writes the result to all ranks of the node.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/comm/node_transport.h"
#include "lockstep/comm/shm/shm_reduce.h"

namespace lockstep::comm {

// The call has a single chunk, divided into transport.rails() slices. Local rank r < rails() carries slice r; the other
// ranks only wait.
class ShmJoin final : public ShmReduce {
 public:
  ShmJoin(ShmProtocol& protocol, const Call& call, NodeTransport& transport);

  bool needs_polling() const override { return join_ != nullptr && !delivered_; }
  // Later calls may reduce as soon as the transport has this call's slice.
  bool may_be_overtaken() const override { return begun_ || finished(); }

 private:
  // Once all ranks of the node are there, the call waits for other nodes. The transport's messages have the timeout
  // themselves and take a moment longer to say who is missing.
  std::vector<int> missing() const override { return begun_ ? std::vector<int>{} : ShmReduce::missing(); }
  std::chrono::nanoseconds grace() const override { return std::chrono::seconds(4); }

  bool reduce_chunk() override;
  void begin_join();
  void write_result();

  NodeTransport& transport_;
  Call call_;
  std::vector<at::Tensor> partials_;  // [elements of the slice], one for each of transport.subtrees()
  std::shared_ptr<Work> join_;
  bool begun_ = false, delivered_ = false;
};

}  // namespace lockstep::comm
