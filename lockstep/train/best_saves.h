// What became of a run's saves of the best so far.
#pragma once

#include <cstdint>

namespace lockstep::train {

struct BestSaves {
  int64_t saved = -1;  // the newest step that was written; -1: none since this start
  int64_t lost = -1;   // the newest step whose save failed; -1: none
};

}  // namespace lockstep::train
