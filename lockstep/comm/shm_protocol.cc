#include "lockstep/comm/shm_protocol.h"

#include <ATen/ops/from_blob.h>
#include <immintrin.h>

#include <algorithm>
#include <memory>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/reduce.h"

namespace lockstep::comm {
namespace {

// How long a wait spins before it sleeps. With a core for every rank a peer is at most a scheduling hiccup away; with
// more ranks than cores whoever spins keeps from its core the very rank that it waits for.
constexpr int64_t kSpinNs = 100'000;
constexpr int64_t kSpinOversubscribedNs = 2'000;
constexpr int64_t kSleepNs = 20'000'000;  // then it looks whether its peers live

void pause_core() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

std::string call_text(const OpRecord& record, uint64_t call) {
  std::string text = cat(name_of(record.kind), " #", call);
  if (record.kind == OpKind::kBarrier) return text;
  text += cat(" [", record.elements, "] ", c10::toString(static_cast<c10::ScalarType>(record.dtype)));
  if (record.tensors != 1) text += cat(" in ", record.tensors, " tensors");
  if (record.kind == OpKind::kBroadcast) return text + cat(" from rank ", record.detail);
  if (record.kind == OpKind::kFold || record.kind == OpKind::kAllGather) return text;
  return text + cat(' ', name_of(static_cast<ReduceOp>(record.detail)));
}

}  // namespace

ShmProtocol::ShmProtocol(Options options, const NodeMemory& memory, Pool& pool, Board* board)
    : options_(options),
      pool_(pool),
      segment_memory_(memory.comm.get()),
      segment_(segment_memory_.at<ShmSegment>(0)),
      peers_(board, options.rank, options.size),
      spin_ns_(usable_cores() >= options.size ? kSpinNs : kSpinOversubscribedNs) {
  if (options.size > kMaxLocalRanks || memory.pools.size() != static_cast<size_t>(options.size)) {
    throw ConfigError(options.size, " ranks on this node: at most ", kMaxLocalRanks,
                      ", and as many as the launcher made");
  }
  for (const auto& peer : memory.pools) pools_.emplace_back(peer.get(), 0, Mapping::OnFork::kLeaveOut);
}

std::optional<uint64_t> ShmProtocol::offset_of(const at::Tensor& tensor) const {
  return pool_.offset_of(tensor.const_data_ptr(), tensor.nbytes());
}

at::Tensor ShmProtocol::pool_like(const at::Tensor& tensor) const {
  auto data = std::make_shared<c10::DataPtr>(pool_.allocate(tensor.nbytes()));
  return at::from_blob(
      data->get(), tensor.sizes(), tensor.strides(), [data](void*) {}, tensor.options());
}

bool ShmProtocol::all_past(const Counters& counters, uint64_t call, int size) {
  for (int rank = 0; rank < size; ++rank) {
    if (counters[static_cast<size_t>(rank)].value.load(std::memory_order_acquire) <= call) return false;
  }
  return true;
}

std::vector<int> ShmProtocol::behind(const Counters& counters, uint64_t call) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (counters[static_cast<size_t>(rank)].value.load(std::memory_order_acquire) <= call) ranks.push_back(rank);
  }
  return ranks;
}

bool ShmProtocol::complete(uint64_t call) const { return all_past(segment_->finished, call, size()); }

uint64_t ShmProtocol::publish(const OpRecord& record, const std::string& what) {
  const uint64_t call = next_call_++;
  if (call >= ShmSegment::kRing && !complete(call - ShmSegment::kRing)) wait_complete(call - ShmSegment::kRing, what);
  const auto self = static_cast<size_t>(rank());
  segment_->records[self][call % ShmSegment::kRing] = record;
  peers_.self().sequence.store(call + 1, std::memory_order_relaxed);
  segment_->raise(segment_->published[self], call + 1);
  return call;
}

const OpRecord& ShmProtocol::record(int rank, uint64_t call) const {
  return segment_->records[static_cast<size_t>(rank)][call % ShmSegment::kRing];
}

bool ShmProtocol::published(uint64_t call) {
  if (!all_past(segment_->published, call, size())) return false;
  if (call >= checked_) check_same_call(call);
  return true;
}

void ShmProtocol::check_same_call(uint64_t call) {
  checked_ = call + 1;
  bool same = true;
  for (int k = 0; k < size(); ++k) same = same && record(k, call).same_call(record(0, call));
  if (same) return;
  std::string text;
  std::vector<bool> told(static_cast<size_t>(size()), false);
  for (int first = 0; first < size(); ++first) {
    std::vector<int> alike;
    for (int k = first; k < size(); ++k) {
      if (told[static_cast<size_t>(k)] || !record(k, call).same_call(record(first, call))) continue;
      told[static_cast<size_t>(k)] = true;
      alike.push_back(k);
    }
    if (alike.empty()) continue;
    text += cat(text.empty() ? "" : ", ", alike.size() == 1 ? "rank " : "ranks ", ranges(alike), " called ",
                call_text(record(first, call), call));
  }
  throw DesyncError(text, "; every rank must make the same calls in the same order");
}

void ShmProtocol::finish(uint64_t call) { segment_->raise(segment_->finished[static_cast<size_t>(rank())], call + 1); }

void ShmProtocol::wait_published(uint64_t call, const std::string& what) {
  wait_until([&] { return published(call); }, segment_->published, call, what);
}

void ShmProtocol::wait_complete(uint64_t call, const std::string& what) {
  wait_until([&] { return complete(call); }, segment_->finished, call, what);
}

void ShmProtocol::wait_until(const std::function<bool()>& ready, const Counters& counters, uint64_t call,
                             const std::string& what) {
  const Deadline spin{std::chrono::nanoseconds(spin_ns_)};
  for (int i = 0;; ++i) {
    if (ready()) return;
    meanwhile_();
    if (i % 16 == 15 && spin.passed()) break;
    pause_core();
  }
  const Deadline deadline(options_.timeout);
  peers_.self().doing.set(cat("waiting at ", what));
  for (;;) {
    const uint32_t seen = segment_->event.load();
    meanwhile_();
    if (ready()) break;
    try {
      check_others(what);
    } catch (const CommError&) {
      if (!ready()) throw;
      break;  // the peer did its last share and left, all since the look before
    }
    if (deadline.passed()) fail_by_timeout(counters, call, what);
    segment_->sleep(seen, kSleepNs);
  }
  peers_.self().doing.set("");
}

void ShmProtocol::check_others(const std::string& what) {
  if (const uint32_t by = segment_->aborted.load(); by != 0) {
    throw CommError("rank ", by - 1, peers_.pid_of(static_cast<int>(by) - 1), " gave up: ", segment_->reason.get(),
                    " (rank ", rank(), " was at ", what, ")");
  }
  peers_.check(what);
}

void ShmProtocol::fail_by_timeout(const Counters& counters, uint64_t call, const std::string& what) {
  const auto missing = behind(counters, call);
  throw CommError("rank ", rank(), ": ", what, ", call #", call, ": waited ",
                  std::chrono::duration<double>(options_.timeout).count(), " s for ",
                  missing.size() == 1 ? "rank " : "ranks ", ranges(missing),
                  "; see what they were at in their logs, or raise --timeout");
}

void ShmProtocol::abort(const std::string& reason) noexcept {
  try {
    segment_->abort(rank(), reason);
  } catch (...) {  // no memory even for the text: the peers will see this process end
  }
}

}  // namespace lockstep::comm
