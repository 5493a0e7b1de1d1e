#include "lockstep/comm/shm/shm_message.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "lockstep/base/text.h"

namespace lockstep::comm {

void ShmMessage::fail(int from, int to, const MessageSlot& slot) {
  failed_ = true;
  const auto type = [](uint32_t dtype) { return c10::toString(static_cast<c10::ScalarType>(dtype)); };
  ShmWork::fail(cat("rank ", protocol_.world_rank(from), " sent [", slot.elements, "] ", type(slot.dtype), " to rank ",
                    protocol_.world_rank(to), ", which expected [", slot.expected_elements, "] ",
                    type(slot.expected_dtype), " (tag ", slot.tag, ")"));
  call_.input.reset();
  call_.output.reset();
}

bool ShmMessage::is_full() const {
  const auto& slots = protocol_.segment().messages[static_cast<size_t>(protocol_.rank())];
  return call_.kind == OpKind::kSend && std::none_of(slots.begin(), slots.end(), [](const MessageSlot& slot) {
           return slot.state.load() == MessageSlot::kFree;
         });
}

WaitingRank ShmMessage::blocked() const {
  const int peer = protocol_.world_rank(call_.peer);
  return {.rank = protocol_.world_rank(protocol_.rank()),
          .kind = call_.kind,
          .peer = peer,
          .tag = call_.tag,
          .what = message_text(call_, peer) +
                  (is_full() ? cat(", with ", ShmSegment::kMessages, " messages under way and room for no more") : ""),
          .waits_for = met() ? std::vector<int>{} : std::vector<int>{peer}};
}

void ShmSend::post() {
  auto& segment = protocol_.segment();
  const auto self = static_cast<size_t>(protocol_.rank());
  auto& used = segment.used[self].value;
  for (size_t i = 0; i < ShmSegment::kMessages; ++i) {
    MessageSlot& slot = segment.messages[self][i];
    if (slot.state.load() != MessageSlot::kFree) continue;
    if (i >= used.load()) used.store(i + 1);
    slot_ = &slot;
    auto& sent = segment.sent[self].value;
    slot.to = call_.peer;
    slot.tag = call_.tag;
    slot.dtype = static_cast<uint32_t>(call_.input.scalar_type());
    slot.elements = call_.input.numel();
    slot.number = sent.load();
    slot.data = source_.offset();
    slot.staged.store(source_.staged(), std::memory_order_relaxed);
    slot.state.store(MessageSlot::kPosted);
    sent.store(slot.number + 1);
    protocol_.node().segment().ring();
    return;
  }
}

void ShmSend::stage() {
  if (source_.complete()) return;
  source_.stage();
  slot_->staged.store(source_.staged());
  protocol_.node().segment().ring();
}

void ShmSend::advance(bool may_match) {
  if (ended()) return;
  if (slot_ == nullptr && may_match) post();
  if (slot_ == nullptr) return;
  stage();
  const uint32_t state = slot_->state.load();
  if (state != MessageSlot::kTaken && state != MessageSlot::kRefused) return;
  if (state == MessageSlot::kRefused) fail(protocol_.rank(), call_.peer, *slot_);
  slot_->state.store(MessageSlot::kFree);
  source_ = ShmSource();
  call_.input.reset();
  if (state == MessageSlot::kTaken) mark_done();
}

void ShmSend::withdraw() {
  constexpr std::chrono::seconds kPatience{1};
  uint32_t posted = MessageSlot::kPosted;
  if (slot_ == nullptr || ended() || slot_->state.compare_exchange_strong(posted, MessageSlot::kFree)) return;
  for (const Deadline end(kPatience); !ended() && !end.passed(); sched_yield()) advance(true);  // it is being pulled
}

// The first posted message for this rank with the tag. A message posted after `sent` was read does not count yet: this
// loop may see it and miss an earlier one.
MessageSlot* ShmReceive::find() const {
  const auto from = static_cast<size_t>(call_.peer);
  auto& segment = protocol_.segment();
  const uint64_t sent = segment.sent[from].value.load();
  MessageSlot* first = nullptr;
  for (auto& slot : segment.messages_of(call_.peer)) {
    if (slot.state.load() != MessageSlot::kPosted || slot.to != protocol_.rank() || slot.tag != call_.tag) continue;
    if (slot.number < sent && (first == nullptr || slot.number < first->number)) first = &slot;
  }
  return first;
}

// Claims the slot for this receiver; false if it can't. Since find(), the slot may have been freed and reused for a
// message to another receiver, which is then put back.
bool ShmReceive::claim(MessageSlot* slot) {
  const uint64_t sent = protocol_.segment().sent[static_cast<size_t>(call_.peer)].value.load();
  uint32_t posted = MessageSlot::kPosted;
  if (!slot->state.compare_exchange_strong(posted, MessageSlot::kClaimed)) return false;
  const bool ours = slot->to == protocol_.rank() && slot->tag == call_.tag && slot->number < sent && is_first(*slot);
  if (ours) return true;
  slot->state.store(MessageSlot::kPosted);
  protocol_.node().segment().ring();
  return false;
}

// Whether no earlier message of the channel is posted.
bool ShmReceive::is_first(const MessageSlot& slot) const {
  const auto slots = protocol_.segment().messages_of(call_.peer);
  return std::none_of(slots.begin(), slots.end(), [&](const MessageSlot& other) {
    return other.state.load() == MessageSlot::kPosted && other.to == slot.to && other.tag == slot.tag &&
           other.number < slot.number;
  });
}

void ShmReceive::advance(bool may_match) {
  if (ended()) return;
  if (slot_ == nullptr) {
    MessageSlot* const slot = may_match ? find() : nullptr;
    if (slot == nullptr || !claim(slot)) return;
    slot_ = slot;
  }
  const auto dtype = static_cast<uint32_t>(call_.output.scalar_type());
  if (slot_->dtype == dtype && slot_->elements == call_.output.numel()) return pull();
  slot_->expected_dtype = dtype;
  slot_->expected_elements = call_.output.numel();
  fail(call_.peer, protocol_.rank(), *slot_);
  slot_->state.store(MessageSlot::kRefused);
  protocol_.node().segment().ring();
}

void ShmReceive::pull() {
  const auto size = static_cast<int64_t>(call_.output.element_size());
  const auto ready = static_cast<int64_t>(std::min(slot_->staged.load(), static_cast<uint64_t>(slot_->elements)));
  if (ready > pulled_) {
    std::memcpy(static_cast<std::byte*>(call_.output.data_ptr()) + pulled_ * size,
                protocol_.at(call_.peer, slot_->data) + pulled_ * size, static_cast<size_t>((ready - pulled_) * size));
    pulled_ = ready;
  }
  if (pulled_ < slot_->elements) return;
  slot_->state.store(MessageSlot::kTaken);
  protocol_.node().segment().ring();
  call_.output.reset();
  mark_done();
}

}  // namespace lockstep::comm
