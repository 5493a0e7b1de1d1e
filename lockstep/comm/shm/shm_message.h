// Send and receive over shared memory: the sender posts the offset of its data in a slot, and the receiver copies the
// data out of the sender's pool. Messages between two ranks with the same tag arrive in the order in which they were
// sent.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/comm/shm/shm_source.h"
#include "lockstep/comm/shm/shm_work.h"

namespace lockstep::comm {

class ShmMessage : public ShmWork {
 public:
  ShmMessage(ShmProtocol& protocol, const Call& call)
      : ShmWork(protocol, call, call.what.empty() ? message_text(call, protocol.world_rank(call.peer)) : call.what),
        call_(call) {}

  // Messages of one channel get their slots in the order of their calls.
  struct Channel {
    OpKind kind;
    int peer, tag;
    bool operator==(const Channel&) const = default;
  };
  Channel channel() const { return {call_.kind, call_.peer, call_.tag}; }

  // Makes progress. `may_match` says whether all earlier messages of its channel have their slots.
  virtual void advance(bool may_match) = 0;
  bool matched() const { return slot_ != nullptr || ended(); }
  bool ended() const { return is_done() || failed_; }
  // Takes back a posted message whose receiver has not begun: the communicator is being destroyed.
  virtual void withdraw() {}

 protected:
  std::vector<int> awaited() const override { return {protocol_.local_rank_of(call_.peer)}; }
  std::vector<int> missing() const override { return {protocol_.local_rank_of(call_.peer)}; }
  WaitingRank blocked() const override;
  // Whether the peer has begun the other end of the message.
  virtual bool met() const = 0;
  // Whether this is a send and its rank has as many messages under way as there are slots.
  bool is_full() const;
  void fail(int from, int to, const MessageSlot& slot);

  Call call_;
  MessageSlot* slot_ = nullptr;

 private:
  bool failed_ = false;
};

class ShmSend final : public ShmMessage {
 public:
  ShmSend(ShmProtocol& protocol, const Call& call)
      : ShmMessage(protocol, call), source_(protocol.node(), call.input, 1) {}

  void advance(bool may_match) override;
  void withdraw() override;

 private:
  bool met() const override { return slot_ != nullptr && slot_->state.load() != MessageSlot::kPosted; }
  void post();
  void stage();

  ShmSource source_;
};

class ShmReceive final : public ShmMessage {
 public:
  using ShmMessage::ShmMessage;
  void advance(bool may_match) override;

 private:
  bool met() const override { return slot_ != nullptr; }
  MessageSlot* find() const;
  bool claim(MessageSlot* slot);
  bool is_first(const MessageSlot& slot) const;
  void pull();

  int64_t pulled_ = 0;
};

}  // namespace lockstep::comm
