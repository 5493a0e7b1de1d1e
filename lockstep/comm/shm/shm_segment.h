// The memory that the ranks of a communicator share to coordinate their calls: what each rank has called, how far it
// is, and a doorbell that wakes sleeping ranks.
//
// Collectives are numbered in the order of their calls. Rank k publishes call s by writing record s into its ring and
// raising published[k] to s + 1. When all ranks have published, each does its share directly on the other ranks' pools
// and raises finished[k] to s + 1. When all have finished, the call is complete and its tensors belong to their owners
// again. A message occupies a slot of its sender until its receiver has taken it. All zeros is the state before the
// first call. Ranks are those of the communicator. The doorbell and `aborted` are used only in the node's own segment,
// where ranks are local ranks, as are the reports of waits.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "lockstep/base/board.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/comm/call.h"

namespace lockstep::comm {

// A rank's record of a call: its data, and its progress. Offsets are in the rank's pool.
struct alignas(64) OpRecord {
  uint64_t data;       // offset of the input, or of a reduction's table with the offset of each tensor
  uint64_t auxiliary;  // offset of a reduction's staging ring or an uneven movement's table of parts; 0: none
  int64_t length;      // elements of the input
  Signature call;      // must be equal on all ranks; only its shape, for messages, is beyond the first cache line
  alignas(64) std::atomic<uint64_t> staged;  // chunks (reduction) or elements of each row (movement) in the pool so far
  std::atomic<uint64_t> reduced;             // reduction: chunks whose slice this rank has reduced
};

// A message under way. The sender fills a free slot and frees it at the end. The receiver takes the message, or refuses
// it and fills in what it expected.
struct alignas(64) MessageSlot {
  enum State : uint32_t { kFree, kPosted, kClaimed, kTaken, kRefused };
  std::atomic<uint32_t> state;
  std::atomic<int32_t> to, tag;
  uint32_t dtype, expected_dtype;
  int64_t elements, expected_elements;
  std::atomic<uint64_t> number;  // its number among its sender's messages
  uint64_t data;                 // offset in the sender's pool
  std::atomic<uint64_t> staged;  // elements in the sender's pool so far
};

// A rank's report of its blocking wait, for the search for circles (deadlock.h).
struct alignas(64) WaitReport {
  std::atomic<uint64_t> wait;       // the wait's number among the rank's waits, from 1; 0: the rank is not waiting
  std::atomic<uint64_t> beats;      // see WaitingRank
  std::atomic<uint64_t> waits_for;  // a bit for each local rank
  std::atomic<OpKind> kind;
  std::atomic<int32_t> peer, tag;
  BoardText<160> what;
};

struct ShmSegment {
  static constexpr uint64_t kRing = 64;     // calls that may be under way at once
  static constexpr size_t kMessages = 128;  // messages of one sender that may be posted at once; more wait for a slot

  struct alignas(64) Counter {
    std::atomic<uint64_t> value;
  };
  using Counters = std::array<Counter, kMaxLocalRanks>;

  Counters published, finished;
  Counters sent;                              // messages that each rank has posted
  alignas(64) std::atomic<uint32_t> event;    // the doorbell, a futex
  alignas(64) std::atomic<uint32_t> waiters;  // number of ranks that sleep on it
  std::atomic<uint32_t> aborted;  // 1 + the rank that gave up first; 0: none has; UINT32_MAX: one is about to
  std::atomic<uint32_t> left;     // number of ranks that have left the group of this segment
  std::atomic<bool> desync;       // whether `reason` is the text of a DesyncError
  BoardText<512> reason;          // why the rank in `aborted` gave up
  std::array<WaitReport, kMaxLocalRanks> waits;
  std::array<std::array<OpRecord, kRing>, kMaxLocalRanks> records;
  std::array<std::array<MessageSlot, kMessages>, kMaxLocalRanks> messages;
  Counters used;  // how many of its slots each rank has ever used: the first ones

  // The slots that a rank has ever used.
  std::span<MessageSlot> messages_of(int rank) {
    const auto of = static_cast<size_t>(rank);
    return std::span(messages[of]).first(used[of].value.load());
  }

  // Rings the doorbell, which wakes all sleeping ranks. A rank rings after each change that others may wait for.
  void ring();
  // Sleeps until `event` differs from `seen`, for at most `ns` nanoseconds.
  void sleep(uint32_t seen, int64_t ns);
  // Records that `rank` gives up because of `why`. Only the first abort counts. `is_desync`: all ranks are to throw
  // DesyncError with that text.
  void abort(int rank, std::string_view why, bool is_desync = false);
};

static_assert(sizeof(ShmSegment) <= NodeMemory::kCommBytes);

}  // namespace lockstep::comm
