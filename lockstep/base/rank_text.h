// A rank's state in words, for whoever waits for it.
#pragma once

#include <string>

#include "lockstep/base/board.h"

namespace lockstep {

// "is stopped (SIGSTOP; kill -CONT 812)", "is dead", "is alive, at step 7, computing", "has not started": by the board
// and by what the kernel says of its process, which is one of this machine.
std::string state_text(const BoardRank& rank);

}  // namespace lockstep
