// Broadcast, all_gather, gather, scatter, all_to_all and reduce_scatter over shared memory: only inputs need lie in the
// pools, and every rank pulls what it gets straight into its own output.
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
  // Elements [begin, begin + count) of the input of rank `from`, and where in the output they go.
  struct Part {
    int from;
    int64_t begin, count;
    std::byte* to;
    int64_t pulled = 0;
  };

  bool sends() const;    // whether others read this rank's input
  bool striped() const;  // the input is a row for each rank
  void locate();
  // What rank `from` brings goes to element `to` of the output: its row for this rank, or all of it. Throws DesyncError
  // unless it is `count` elements.
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
  PoolBlock table_;  // int64 [size + 1], of uneven parts: where in the input each rank's begins
  bool located_ = false;
  std::vector<Part> parts_;
  size_t next_ = 0;  // parts before it are pulled
};

}  // namespace lockstep::comm
