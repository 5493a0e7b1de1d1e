#include "lockstep/comm/single_communicator.h"

#include "lockstep/base/error.h"
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
    if (call.fold.wire) round_to_wire(*call.fold.wire, tensor.detach().mutable_data_ptr<float>(), tensor.numel());
  }
  if (call.fold.square_sums.defined()) take_square_sums(call.tensors, call.fold.square_sums);
}

}  // namespace

std::shared_ptr<Work> SingleCommunicator::begin(Call call) {
  if (call.kind == OpKind::kFold) {
    fold_alone(call);
  } else if (call.kind == OpKind::kSend) {
    sent_.emplace(call.tag, call.input.clone());
  } else if (call.kind == OpKind::kReceive) {
    const auto message = sent_.lower_bound(call.tag);  // the first of that tag
    if (message == sent_.end() || message->first != call.tag)
      throw CommError("receive: nothing was sent with tag ", call.tag, ", in a world of 1");
    if (message->second.numel() != call.output.numel() || message->second.scalar_type() != call.output.scalar_type()) {
      throw DesyncError("receive: a ", message->second.toString(), " of ", message->second.numel(),
                        " elements was sent, a ", call.output.toString(), " of ", call.output.numel(), " expected");
    }
    call.output.copy_(message->second.view(call.output.sizes()));
    sent_.erase(message);
  } else if (call.output.defined() && !call.output.is_same(call.input)) {
    call.output.view({-1}).copy_(call.input.view({-1}));
  }
  return std::make_shared<DoneWork>();
}

std::unique_ptr<Communicator> SingleCommunicator::group(const std::vector<int>& members) {
  return members.empty() ? nullptr : std::make_unique<SingleCommunicator>();
}

}  // namespace lockstep::comm
