// The protocol of shm_segment.h from one rank's side: publish a call, see who has, finish.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/shm/shm_node.h"
#include "lockstep/comm/shm/shm_segment.h"

namespace lockstep::comm {

// One thread. Ranks are those of the communicator.
class ShmProtocol {
 public:
  // Over `segment`, for the ranks at these places of the node, this one among them.
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

  // Offset `offset` of a rank's pool, in this process.
  std::byte* at(int rank, uint64_t offset) const { return node_->at(local_rank_of(rank), offset); }

  // What a rank says of a call: where its data lies, and how far it is.
  struct PublishedCall {
    Signature call;
    uint64_t data = 0, auxiliary = 0;
    int64_t length = 0;
    uint64_t staged = UINT64_MAX;
  };
  // Begins the next call; returns its number. The one kRing calls before it must be complete (full()).
  uint64_t publish(const PublishedCall& published);
  bool full() const;
  uint64_t next_call() const { return next_call_; }
  OpRecord& record(int rank, uint64_t call) const {
    return segment_->records[static_cast<size_t>(rank)][call % ShmSegment::kRing];
  }
  OpRecord& own(uint64_t call) const { return record(rank_, call); }
  // Whether all ranks have published the call. Throws DesyncError if they called different things.
  bool published(uint64_t call);
  // Says that this rank has done its share of the call (calls are finished in order).
  void finish(uint64_t call) { raise(segment_->finished, call); }
  // Whether all ranks have finished it.
  bool complete(uint64_t call) const { return all_past(segment_->finished, call); }

  // The least of a counter of the call's records over ranks.
  uint64_t least(uint64_t call, std::atomic<uint64_t> OpRecord::*counter) const;
  // Raises this rank's and, if it was the last to get there, rings.
  void raise(uint64_t call, std::atomic<uint64_t> OpRecord::*counter, uint64_t value) const;

  // The places of who has not yet finished the call, and of those who have not even published it, if any.
  std::vector<int> unfinished(uint64_t call) const { return behind(segment_->finished, call); }
  std::vector<int> missing(uint64_t call) const;

 private:
  std::vector<int> behind(const ShmSegment::Counters& counters, uint64_t call) const;
  bool all_past(const ShmSegment::Counters& counters, uint64_t call) const;
  void raise(ShmSegment::Counters& counters, uint64_t call);
  void check_same_call(uint64_t call) const;

  std::shared_ptr<ShmNode> node_;
  ShmSegment* segment_;
  std::vector<int> local_ranks_;
  int rank_;
  std::chrono::milliseconds timeout_;
  uint64_t next_call_ = 0;
  uint64_t checked_ = 0;  // calls below it are known to be the same on all ranks
};

}  // namespace lockstep::comm
