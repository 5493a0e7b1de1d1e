// Ranks that wait for each other in a circle. Each rank in a blocking wait publishes which ranks have still to begin a
// call before its own can end. A rank that waits begins no call, so a circle of waiting ranks never ends: it is told at
// once instead of at the timeout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/comm/call.h"

namespace lockstep::comm {

// A rank in a blocking wait. Ranks are those of the world.
struct WaitingRank {
  int rank = 0;
  uint64_t wait = 0;   // the wait's number among the rank's waits
  uint64_t beats = 0;  // grows as long as the wait lasts, each time that the rank has looked at its calls again
  OpKind kind = OpKind::kBarrier;
  int peer = 0, tag = 0;            // of a message
  std::string what = {};            // the call in words: "send to rank 1 (tag 0)", "barrier #3 of the world"
  std::vector<int> waits_for = {};  // the ranks that have not begun what this rank waits for
};

// The circle that rank `from` waits for, itself or through other ranks, from its lowest rank on; empty if there is
// none.
std::vector<WaitingRank> find_circle(const std::vector<WaitingRank>& waiting, int from);

// "the world", "the group of ranks 0-1".
std::string group_text(std::vector<int> ranks, bool is_world);

// The text of a DesyncError: "rank 0 waits in send to rank 1 (tag 0), rank 1 in send to rank 0 (tag 0): …".
std::string circle_text(const std::vector<WaitingRank>& circle);

// A rank's report may be older than what has reached it meanwhile. A circle counts when the same waits are in it twice
// and all of its ranks have looked at their calls in between.
class CircleCheck {
 public:
  // Whether `circle`, the one that this rank sees now, counts.
  bool confirms(const std::vector<WaitingRank>& circle);

 private:
  bool is_later(const std::vector<WaitingRank>& circle) const;

  std::vector<WaitingRank> seen_;
  int times_ = 0;
};

}  // namespace lockstep::comm
