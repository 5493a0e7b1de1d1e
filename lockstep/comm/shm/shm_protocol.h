// One rank's side of the protocol of shm_segment.h: publish a call, see which ranks have published it, finish it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/shm/shm_node.h"
#include "lockstep/comm/shm/shm_segment.h"

namespace lockstep::comm {

// Ranks are those of the communicator unless they are called local. One thread.
class ShmProtocol {
 public:
  // Rank k of the communicator is local_ranks[k] of the node; this process is one of them. `segment` outlives this.
  ShmProtocol(std::shared_ptr<ShmNode> node, ShmSegment& segment, std::vector<int> local_ranks,
              std::chrono::milliseconds timeout);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(local_ranks_.size()); }
  ShmNode& node() const { return *node_; }
  const std::shared_ptr<ShmNode>& shared_node() const { return node_; }
  ShmSegment& segment() const { return *segment_; }
  int local_rank_of(int rank) const { return local_ranks_[static_cast<size_t>(rank)]; }
  int world_rank(int rank) const { return node_->peers().world_rank_of(local_rank_of(rank)); }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // The address, in this process, of offset `offset` of a rank's pool.
  std::byte* at(int rank, uint64_t offset) const { return node_->at(local_rank_of(rank), offset); }

  // The contents of a new OpRecord (shm_segment.h), whose fields have the same names.
  struct PublishedCall {
    Signature call;
    uint64_t data = 0, auxiliary = 0;
    int64_t length = 0;
    uint64_t staged = UINT64_MAX;
  };
  // Publishes this rank's next call and returns its number. Not to be called while full().
  uint64_t publish(const PublishedCall& published);
  // Whether the record that the next call needs still belongs to a call that is not complete.
  bool full() const;
  uint64_t next_call() const { return next_call_; }
  OpRecord& record(int rank, uint64_t call) const {
    return segment_->records[static_cast<size_t>(rank)][call % ShmSegment::kRing];
  }
  // This rank's record of the call.
  OpRecord& own(uint64_t call) const { return record(rank_, call); }
  // Whether all ranks have published the call. Throws DesyncError if their calls differ.
  bool published(uint64_t call);
  // Marks this rank's share of the call as done. Calls are finished in their order.
  void finish(uint64_t call) { raise(segment_->finished, call); }
  // Whether all ranks have finished it.
  bool complete(uint64_t call) const { return all_past(segment_->finished, call); }

  // The minimum over ranks of a counter in the call's records.
  uint64_t least(uint64_t call, std::atomic<uint64_t> OpRecord::*counter) const;
  // Raises this rank's counter to `value`, and rings the doorbell if all ranks have then reached that value.
  void raise(uint64_t call, std::atomic<uint64_t> OpRecord::*counter, uint64_t value) const;

  // The local ranks that have not published the call, and those that have not finished it.
  std::vector<int> absent(uint64_t call) const { return behind(segment_->published, call); }
  std::vector<int> unfinished(uint64_t call) const { return behind(segment_->finished, call); }
  // The local ranks that have not published the call or, if all have, those that have not finished it.
  std::vector<int> missing(uint64_t call) const;
  // This rank in a wait for the call, which the ranks that have not published it hold up.
  WaitingRank blocked_in(uint64_t call) const;

 private:
  std::vector<int> behind(const ShmSegment::Counters& counters, uint64_t call) const;
  bool all_past(const ShmSegment::Counters& counters, uint64_t call) const;
  void raise(ShmSegment::Counters& counters, uint64_t call);
  void check_same_call(uint64_t call) const;
  std::vector<int> world_ranks() const;

  std::shared_ptr<ShmNode> node_;
  ShmSegment* segment_;
  std::vector<int> local_ranks_;
  int rank_;
  std::chrono::milliseconds timeout_;
  uint64_t next_call_ = 0;
  uint64_t checked_ = 0;  // calls below it are known to be the same on all ranks
};

}  // namespace lockstep::comm
