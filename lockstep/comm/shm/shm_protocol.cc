#include "lockstep/comm/shm/shm_protocol.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::comm {

ShmProtocol::ShmProtocol(std::shared_ptr<ShmNode> node, ShmSegment& segment, std::vector<int> local_ranks,
                         std::chrono::milliseconds timeout)
    : node_(std::move(node)),
      segment_(&segment),
      local_ranks_(std::move(local_ranks)),
      rank_(
          static_cast<int>(std::find(local_ranks_.begin(), local_ranks_.end(), node_->self()) - local_ranks_.begin())),
      timeout_(bounded(timeout)) {}

bool ShmProtocol::all_past(const ShmSegment::Counters& counters, uint64_t call) const {
  for (int rank = 0; rank < size(); ++rank) {
    if (counters[static_cast<size_t>(rank)].value.load() <= call) return false;
  }
  return true;
}

// A sleeping rank waits until all ranks are past a call, so only the last of them rings the doorbell.
void ShmProtocol::raise(ShmSegment::Counters& counters, uint64_t call) {
  counters[static_cast<size_t>(rank_)].value.store(call + 1);
  if (all_past(counters, call)) node_->segment().ring();
}

uint64_t ShmProtocol::least(uint64_t call, std::atomic<uint64_t> OpRecord::*counter) const {
  uint64_t least = UINT64_MAX;
  for (int rank = 0; rank < size(); ++rank) least = std::min(least, (record(rank, call).*counter).load());
  return least;
}

void ShmProtocol::raise(uint64_t call, std::atomic<uint64_t> OpRecord::*counter, uint64_t value) const {
  (own(call).*counter).store(value);
  if (least(call, counter) >= value) node_->segment().ring();
}

bool ShmProtocol::full() const { return next_call_ >= ShmSegment::kRing && !complete(next_call_ - ShmSegment::kRing); }

uint64_t ShmProtocol::publish(const PublishedCall& published) {
  const uint64_t call = next_call_++;
  OpRecord& record = own(call);
  record.call = published.call;
  record.data = published.data;
  record.auxiliary = published.auxiliary;
  record.length = published.length;
  record.staged.store(published.staged, std::memory_order_relaxed);
  record.reduced.store(0, std::memory_order_relaxed);
  node_->peers().self().sequence.fetch_add(1, std::memory_order_relaxed);
  raise(segment_->published, call);
  return call;
}

bool ShmProtocol::published(uint64_t call) {
  if (!all_past(segment_->published, call)) return false;
  if (call >= checked_) {
    check_same_call(call);
    checked_ = call + 1;
  }
  return true;
}

void ShmProtocol::check_same_call(uint64_t call) const {
  bool same = true;
  for (int k = 0; k < size(); ++k) same = same && record(k, call).call == record(0, call).call;
  if (same) return;
  std::vector<std::optional<Signature>> by_rank;
  const std::vector<int> ranks = world_ranks();
  for (int k = 0; k < size(); ++k) {
    const auto name = static_cast<size_t>(world_rank(k));
    if (by_rank.size() <= name) by_rank.resize(name + 1);
    by_rank[name] = in_world_ranks(record(k, call).call, ranks);
  }
  throw DesyncError(difference_text(by_rank, call));
}

std::vector<int> ShmProtocol::behind(const ShmSegment::Counters& counters, uint64_t call) const {
  std::vector<int> local_ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (counters[static_cast<size_t>(rank)].value.load() <= call) local_ranks.push_back(local_rank_of(rank));
  }
  return local_ranks;
}

std::vector<int> ShmProtocol::world_ranks() const {
  std::vector<int> ranks;
  for (int k = 0; k < size(); ++k) ranks.push_back(world_rank(k));
  return ranks;
}

WaitingRank ShmProtocol::blocked_in(uint64_t call) const {
  const Signature& own_call = own(call).call;
  WaitingRank waiting{.rank = world_rank(rank_),
                      .kind = own_call.kind,
                      .what = cat(text_of(in_world_ranks(own_call, world_ranks()), call), " of ",
                                  group_text(world_ranks(), segment_ == &node_->segment()))};
  for (const int local : absent(call)) {
    waiting.waits_for.push_back(node_->peers().world_rank_of(local));
  }
  return waiting;
}

std::vector<int> ShmProtocol::missing(uint64_t call) const {
  auto local_ranks = absent(call);
  return local_ranks.empty() ? unfinished(call) : local_ranks;
}

}  // namespace lockstep::comm
