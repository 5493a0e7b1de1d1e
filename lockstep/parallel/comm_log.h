// The cost of reducing all buckets of a step, for metrics and for the node's board.
#pragma once

#include <cstdint>

#include "lockstep/base/board.h"
#include "lockstep/parallel/reducer.h"

namespace lockstep::parallel {

// Of the last step; Reducer::log() has each bucket's.
struct CommLog {
  int64_t bytes = 0;     // of gradients, on this rank
  double in_flight = 0;  // seconds from launch to end, added up over buckets
  double waited = 0;     // of those, seconds in which this rank waited
  double overlap() const { return in_flight > 0 ? 1 - waited / in_flight : 0; }  // share of the time that backward hid
};

CommLog comm_log_of(const Reducer& reducer);

// Adds a step's cost to the board's sums of this rank.
void add_to_board(const CommLog& log, BoardRank& rank);

}  // namespace lockstep::parallel
