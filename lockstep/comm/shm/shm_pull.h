// Broadcast, all_gather, gather, scatter, all_to_all, reduce_scatter and barrier over shared memory. Only inputs have
// to lie in the pools: every rank pulls its parts from the other ranks' inputs into its own output.
#pragma once

#include <vector>

#include "lockstep/comm/shm/shm_source.h"
#include "lockstep/comm/shm/shm_work.h"

namespace lockstep::comm {

class ShmPull final : public ShmCollective {
 public:
  ShmPull(ShmProtocol& protocol, const Call& call);

  void advance(bool may_finish) override;

 private:
  // Elements [begin, begin + count) of the input of rank `from`, which go to the address `to` in the output.
  struct Part {
    int from;
    int64_t begin, count;
    std::byte* to;
    int64_t pulled = 0;
  };

  bool sends() const;    // whether others read this rank's input
  bool striped() const;  // the input is a row for each rank
  void locate();
  // Add a part of the input of rank `from`, its row for this rank or the whole input, that goes to element `to` of the
  // output. Throw DesyncError unless that part has `count` elements.
  void add_row_of(int from, int64_t count, int64_t to);
  void add_whole(int from, int64_t count, int64_t to);
  void add_part(int from, int64_t begin, int64_t sent, int64_t count, int64_t to);
  const std::byte* data_of(const Part& part) const;
  int64_t available(const Part& part) const;
  bool stage();
  bool pull();
  bool pull_copies();
  bool pull_sums();

  Call call_;
  int64_t element_size_;
  ShmSource source_;
  PoolBlock table_;  // int64 [size + 1], of an uneven input: the element at which each rank's part begins
  bool located_ = false;
  std::vector<Part> parts_;
  size_t next_ = 0;  // the first part that is not all pulled
};

}  // namespace lockstep::comm
