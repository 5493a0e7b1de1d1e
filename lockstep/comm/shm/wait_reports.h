// The reports that ranks of a node make of their blocking waits, and the search for ranks that wait in a circle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/comm/deadlock.h"
#include "lockstep/comm/shm/shm_segment.h"

namespace lockstep::comm {

// Ranks are local ranks but in WaitingRank, which has the world's. One thread.
class WaitReports {
 public:
  // `world_ranks` are by local rank. `segment`, the node's, outlives this.
  WaitReports(ShmSegment& segment, int self, std::vector<int> world_ranks)
      : segment_(segment), self_(self), world_ranks_(std::move(world_ranks)) {}

  // Reports that this rank is still in its wait, and looks for a circle that holds it up. Returns the circle's text; ""
  // if there is none, or none for sure yet.
  std::string look(const WaitingRank& own);
  // Ends this rank's wait.
  void end();

 private:
  std::vector<WaitingRank> read() const;
  uint64_t local_bits(const std::vector<int>& ranks) const;

  ShmSegment& segment_;
  int self_;
  std::vector<int> world_ranks_;
  uint64_t waits_ = 0;
  bool reported_ = false;
  CircleCheck check_;
};

}  // namespace lockstep::comm
