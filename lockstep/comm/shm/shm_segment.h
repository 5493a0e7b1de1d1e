// The memory in which the ranks of a communicator meet: what each has called, how far each is, and how to wake who
// waits.
//
// Collectives are numbered in the order of their calls. Rank k publishes call s by writing record s into its ring and
// raising published[k] to s + 1; when all ranks have, each does its share straight from the others' pools and raises
// finished[k] to s + 1; when all have finished, the call is complete and its tensors belong to their owners again.
// Messages lie in slots of their sender until their receiver has taken them. All zeros is the state before the first
// call. Ranks below are those of the communicator; the bell and who gave up are those of the node's own segment.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "lockstep/base/board.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/comm/call.h"

namespace lockstep::comm {

// What a rank says of a call, and how far it is with it.
struct alignas(64) OpRecord {
  Signature call;      // must be equal on all ranks
  uint64_t data;       // where in its pool the input lies; of a reduction, a table with the place of each tensor
  uint64_t auxiliary;  // of a reduction: its staging ring, 0 if it needs none; of an uneven movement: a table of parts
  int64_t length;      // elements of the input
  alignas(64) std::atomic<uint64_t> staged;  // reduction: chunks that lie in the pool; movement: elements of each row
  std::atomic<uint64_t> reduced;             // reduction: chunks of which this rank has reduced its slice
};

// A message under way. The sender fills a free slot and frees it again; the receiver takes it, or refuses it by saying
// what it expected.
struct alignas(64) MessageSlot {
  enum State : uint32_t { kFree, kPosted, kClaimed, kTaken, kRefused };
  std::atomic<uint32_t> state;
  std::atomic<int32_t> to, tag;
  uint32_t dtype, expected_dtype;
  int64_t elements, expected_elements;
  std::atomic<uint64_t> number;  // of its sender's messages
  uint64_t data;
  std::atomic<uint64_t> staged;  // elements that lie in the pool
};

struct ShmSegment {
  static constexpr uint64_t kRing = 64;    // calls that may be under way at once
  static constexpr size_t kMessages = 32;  // messages of one sender that may lie ready at once

  struct alignas(64) Counter {
    std::atomic<uint64_t> value;
  };
  using Counters = std::array<Counter, kMaxLocalRanks>;

  Counters published, finished;
  Counters sent;                              // messages posted
  alignas(64) std::atomic<uint32_t> event;    // a futex: the bell
  alignas(64) std::atomic<uint32_t> waiters;  // ranks that sleep on it
  std::atomic<uint32_t> aborted;              // 1 + the rank that gave up first
  std::atomic<uint32_t> left;                 // ranks that have let go of a group's segment
  BoardText<512> reason;                      // why it did
  std::array<std::array<OpRecord, kRing>, kMaxLocalRanks> records;
  std::array<std::array<MessageSlot, kMessages>, kMaxLocalRanks> messages;

  // Wakes all who sleep. Whoever changes what others may wait for rings after it.
  void ring();
  // Sleeps until the event differs from `seen`, for at most `ns`.
  void sleep(uint32_t seen, int64_t ns);
  // Gives up for all; the first reason counts.
  void abort(int rank, std::string_view why);
};

static_assert(sizeof(ShmSegment) <= NodeMemory::kCommBytes);

}  // namespace lockstep::comm
