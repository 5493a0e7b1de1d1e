// The memory in which the ranks of a node meet: what each has called, how far each is, and how to wake who waits.
//
// Collectives are numbered in the order of their calls. Rank k publishes call s by writing record s into its ring and
// raising published[k] to s + 1; when all ranks have, each does its share straight from the others' pools and raises
// finished[k] to s + 1; when all have finished, the call is complete and its tensors belong to their owners again. All
// zeros is the state before the first call.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "lockstep/base/board.h"
#include "lockstep/base/node_memory.h"

namespace lockstep::comm {

enum class OpKind : uint32_t { kFold, kAllReduce, kBroadcast, kAllGather, kReduceScatter, kBarrier };

// The collective's name, for messages; "unknown" for memory that holds no kind.
const char* name_of(OpKind kind);

// What a rank says of a call. The first line must be equal on all ranks; the second is where its data lies in its pool.
struct alignas(64) OpRecord {
  OpKind kind;
  uint32_t dtype, detail, tensors;  // detail: the ReduceOp, or the root
  int64_t elements;                 // of all tensors of the call together
  uint64_t sizes_hash;              // of the tensors' numbers of elements
  uint64_t offset;                  // the data; of a fold, a table of one offset for each tensor
  uint64_t stride;                  // of a reduce_scatter: bytes from row to row

  bool same_call(const OpRecord& other) const {
    return kind == other.kind && dtype == other.dtype && detail == other.detail && tensors == other.tensors &&
           elements == other.elements && sizes_hash == other.sizes_hash;
  }
};

struct ShmSegment {
  static constexpr uint64_t kRing = 64;  // calls that may be under way at once

  struct alignas(64) Counter {
    std::atomic<uint64_t> value;
  };

  std::array<Counter, kMaxLocalRanks> published;
  std::array<Counter, kMaxLocalRanks> finished;
  alignas(64) std::atomic<uint32_t> event;    // a futex: raised with every counter
  alignas(64) std::atomic<uint32_t> waiters;  // ranks that sleep on it
  std::atomic<uint32_t> aborted;              // 1 + the rank that gave up first
  BoardText<512> reason;                      // why it did
  std::array<std::array<OpRecord, kRing>, kMaxLocalRanks> records;

  // Raises a counter and wakes all who sleep.
  void raise(Counter& counter, uint64_t value);
  // Sleeps until the event differs from `seen`, for at most `ns`.
  void sleep(uint32_t seen, int64_t ns);
  // Gives up for all; the first reason counts.
  void abort(int rank, std::string_view why);
};

static_assert(sizeof(ShmSegment) <= NodeMemory::kCommBytes);

}  // namespace lockstep::comm
