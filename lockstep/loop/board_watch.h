// Publishes on the board that a rank waits for data, and where the time of reading goes.
#pragma once

#include <memory>

#include "lockstep/base/board.h"
#include "lockstep/data/loader.h"

namespace lockstep::loop {

// The watch of a loader: ranks that wait for this one then read "waiting for data". `self`, this rank's part of the
// board, outlives it.
std::shared_ptr<data::LoaderWatch> board_watch(BoardRank& self);

}  // namespace lockstep::loop
