#include "lockstep/comm/shm/shm_pull.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/comm/reduce.h"

namespace lockstep::comm {
namespace {

const at::Tensor& any_tensor(const Call& call) { return call.input.defined() ? call.input : call.output; }

}  // namespace

ShmPull::ShmPull(ShmProtocol& protocol, const Call& call)
    : ShmCollective(protocol, call),
      call_(call),
      element_size_(call.kind == OpKind::kBarrier ? 1 : static_cast<int64_t>(any_tensor(call).element_size())) {
  if (sends()) source_ = ShmSource(protocol.node(), call_.input, striped() ? protocol.size() : 1);
  if (call_.uneven && !call_.send_counts.empty()) {
    table_ = protocol.node().allocate(static_cast<size_t>(protocol.size() + 1) * sizeof(int64_t));
    auto* begin = table_.as<int64_t>();
    *begin = 0;
    for (const int64_t count : call_.send_counts) begin[1] = begin[0] + count, ++begin;
  }
  number_ = protocol_.publish({.call = signature_of(call_),
                               .data = source_.offset(),
                               .auxiliary = table_.offset,
                               .length = call_.input.defined() ? call_.input.numel() : 0,
                               .staged = source_.staged()});
}

bool ShmPull::sends() const {
  switch (call_.kind) {
    case OpKind::kBarrier:
      return false;
    case OpKind::kBroadcast:
    case OpKind::kScatter:
      return call_.peer == protocol_.rank();
    case OpKind::kGather:
      return call_.peer != protocol_.rank();
    default:
      return true;
  }
}

bool ShmPull::striped() const {
  return !call_.uneven &&
         (call_.kind == OpKind::kReduceScatter || call_.kind == OpKind::kAllToAll || call_.kind == OpKind::kScatter);
}

// Lists the parts that this rank gets. They begin with its own and go on with the next rank's, so that not all ranks
// read the same rank at once.
void ShmPull::locate() {
  const int size = protocol_.size(), self = protocol_.rank();
  const bool to_all = call_.kind == OpKind::kAllGather || call_.kind == OpKind::kAllToAll;
  if (to_all || (call_.kind == OpKind::kGather && call_.peer == self)) {
    std::vector<int64_t> at(static_cast<size_t>(size) + 1, 0);
    for (size_t k = 0; k < static_cast<size_t>(size); ++k) at[k + 1] = at[k] + call_.receive_counts[k];
    for (int i = 0; i < size; ++i) {
      const int from = (self + i) % size;
      const auto k = static_cast<size_t>(from);
      if (call_.kind == OpKind::kAllToAll) {
        add_row_of(from, at[k + 1] - at[k], at[k]);
      } else {
        add_whole(from, at[k + 1] - at[k], at[k]);
      }
    }
  } else if (call_.kind == OpKind::kScatter) {
    add_row_of(call_.peer, call_.output.numel(), 0);
  } else if (call_.kind == OpKind::kBroadcast && call_.peer != self) {
    add_whole(call_.peer, call_.output.numel(), 0);
  } else if (call_.kind == OpKind::kReduceScatter) {
    for (int from = 0; from < size; ++from) add_row_of(from, call_.output.numel(), 0);
  }
  located_ = true;
}

void ShmPull::add_row_of(int from, int64_t count, int64_t to) {
  const OpRecord& record = protocol_.record(from, number_);
  int64_t begin = protocol_.rank() * (record.length / protocol_.size());
  int64_t sent = record.length / protocol_.size();
  if (record.auxiliary != 0) {
    const auto* table = reinterpret_cast<const int64_t*>(protocol_.at(from, record.auxiliary)) + protocol_.rank();
    begin = table[0];
    sent = table[1] - begin;
  }
  add_part(from, begin, sent, count, to);
}

void ShmPull::add_whole(int from, int64_t count, int64_t to) {
  add_part(from, 0, protocol_.record(from, number_).length, count, to);
}

void ShmPull::add_part(int from, int64_t begin, int64_t sent, int64_t count, int64_t to) {
  if (sent != count) {
    throw DesyncError(name_of(call_.kind), " #", number_, ": rank ", protocol_.world_rank(from), " sends ", sent,
                      " elements to rank ", protocol_.world_rank(protocol_.rank()), ", which expects ", count);
  }
  if (count == 0) return;
  auto* output = static_cast<std::byte*>(call_.output.data_ptr());
  parts_.push_back({from, begin, count, output + to * element_size_});
}

const std::byte* ShmPull::data_of(const Part& part) const {
  const std::byte* data = part.from == protocol_.rank()
                              ? static_cast<const std::byte*>(call_.input.const_data_ptr())
                              : protocol_.at(part.from, protocol_.record(part.from, number_).data);
  return data + (part.begin + part.pulled) * element_size_;
}

// Elements of the part that can be pulled now.
int64_t ShmPull::available(const Part& part) const {
  if (part.from == protocol_.rank()) return part.count - part.pulled;
  const uint64_t staged = protocol_.record(part.from, number_).staged.load();
  if (staged == UINT64_MAX) return part.count - part.pulled;
  const int64_t ready = static_cast<int64_t>(staged) - (striped() ? 0 : part.begin);
  return std::max<int64_t>(std::min(ready, part.count) - part.pulled, 0);
}

bool ShmPull::stage() {
  if (source_.complete()) return false;
  source_.stage();
  protocol_.own(number_).staged.store(source_.staged());
  protocol_.node().segment().ring();
  return true;
}

bool ShmPull::pull_copies() {
  bool moved = false;
  for (size_t i = next_; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (const int64_t count = available(part); count > 0) {
      std::byte* to = part.to + part.pulled * element_size_;
      const std::byte* from = data_of(part);
      if (to != from) std::memmove(to, from, static_cast<size_t>(count * element_size_));
      part.pulled += count;
      moved = true;
    }
    if (i == next_ && part.pulled == part.count) ++next_;
  }
  return moved;
}

// Reduces all parts together, as far as all of them are staged.
bool ShmPull::pull_sums() {
  if (parts_.empty() || next_ == parts_.size()) return false;
  int64_t count = parts_[0].count;
  for (const Part& part : parts_) count = std::min(count, available(part));
  std::array<Source, kMaxLocalRanks> sources;
  for (int64_t left = count; left > 0;) {
    const int64_t elements = std::min(left, kBlockElements);
    for (size_t k = 0; k < parts_.size(); ++k) sources[k] = {data_of(parts_[k])};
    reduce_block(call_.output.scalar_type(), call_.op, std::span<const Source>(sources.data(), parts_.size()),
                 parts_[0].to + parts_[0].pulled * element_size_, elements, protocol_.node().scratch());
    for (Part& part : parts_) part.pulled += elements;
    left -= elements;
  }
  if (parts_[0].pulled == parts_[0].count) next_ = parts_.size();
  return count > 0;
}

bool ShmPull::pull() {
  if (!located_) {
    if (!protocol_.published(number_)) return false;
    locate();
  }
  return call_.kind == OpKind::kReduceScatter ? pull_sums() : pull_copies();
}

void ShmPull::advance(bool may_finish) {
  if (is_done()) return;
  if (!finished()) {
    for (bool moved = true; moved;) {
      moved = stage();
      moved = pull() || moved;
    }
    if (!may_finish || !located_ || next_ < parts_.size() || !source_.complete()) return;
    finish();
  }
  if (!protocol_.complete(number_)) return;
  call_ = Call();
  parts_.clear();
  source_ = ShmSource();
  table_ = PoolBlock();
  mark_done();
}

}  // namespace lockstep::comm
