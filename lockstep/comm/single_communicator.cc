#include "lockstep/comm/single_communicator.h"

#include "lockstep/base/error.h"
#include "lockstep/comm/round_to_wire.h"
#include "lockstep/comm/square_sums.h"

namespace lockstep::comm {
namespace {

class DoneWork final : public Work {
 public:
  bool done() override { return true; }
  bool wait_for(std::chrono::nanoseconds) override { return true; }
  void wait() override {}
  std::chrono::nanoseconds elapsed() const override { return std::chrono::nanoseconds(0); }
};

// A fold of one rank's values, which only rounds to the wire's type and computes the square sums.
void fold_alone(const Call& call) {
  for (const auto& tensor : call.tensors) {
    if (call.fold.wire) round_to_wire(*call.fold.wire, tensor);
  }
  if (call.fold.square_sums.defined()) take_square_sums(call.tensors, call.fold.square_sums);
}

}  // namespace

struct SingleCommunicator::Receive {
  Call call;
  bool done = false;
};

// A receive that was begun before its message. The rank that waits for it can't send any more.
class SingleCommunicator::ReceiveWork final : public Work {
 public:
  explicit ReceiveWork(std::shared_ptr<Receive> receive) : receive_(std::move(receive)) {}
  bool done() override { return receive_->done; }
  bool wait_for(std::chrono::nanoseconds) override { return receive_->done; }
  void wait() override {
    if (receive_->done) return;
    throw DesyncError("rank 0 waits in ", message_text(receive_->call, 0), ", a message to itself that was not sent");
  }
  std::chrono::nanoseconds elapsed() const override { return std::chrono::nanoseconds(0); }

 private:
  std::shared_ptr<Receive> receive_;
};

void SingleCommunicator::deliver(const at::Tensor& message, const Call& call) const {
  if (message.numel() != call.output.numel() || message.scalar_type() != call.output.scalar_type()) {
    throw DesyncError("receive: a ", message.toString(), " of ", message.numel(), " elements was sent, a ",
                      call.output.toString(), " of ", call.output.numel(), " expected");
  }
  call.output.copy_(message.view(call.output.sizes()));
}

void SingleCommunicator::begin_send(const Call& call) {
  const auto first = receives_.lower_bound(call.tag);
  if (first == receives_.end() || first->first != call.tag) {
    sent_.emplace(call.tag, call.input.clone());
    return;
  }
  deliver(call.input, first->second->call);
  first->second->done = true;
  receives_.erase(first);
}

std::shared_ptr<Work> SingleCommunicator::begin_receive(const Call& call) {
  const auto first = sent_.lower_bound(call.tag);
  if (first == sent_.end() || first->first != call.tag) {
    const auto waiting = std::make_shared<Receive>(Receive{call});
    receives_.emplace(call.tag, waiting);
    return std::make_shared<ReceiveWork>(waiting);
  }
  deliver(first->second, call);
  sent_.erase(first);
  return std::make_shared<DoneWork>();
}

std::shared_ptr<Work> SingleCommunicator::begin(Call call) {
  if (call.kind == OpKind::kFold) {
    fold_alone(call);
  } else if (call.kind == OpKind::kSend) {
    begin_send(call);
  } else if (call.kind == OpKind::kReceive) {
    return begin_receive(call);
  } else if (call.output.defined() && !call.output.is_same(call.input)) {
    call.output.view({-1}).copy_(call.input.view({-1}));
  }
  return std::make_shared<DoneWork>();
}

std::unique_ptr<Communicator> SingleCommunicator::group(const std::vector<int>& members) {
  return members.empty() ? nullptr : std::make_unique<SingleCommunicator>();
}

}  // namespace lockstep::comm
