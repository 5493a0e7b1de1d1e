// What somebody whose run has met a sample that can't be read can do about it.
#pragma once

#include <functional>

#include "lockstep/train/parts.h"

namespace lockstep::train {

// Calls `act`, which reads samples of the run. A DataError that it throws is thrown on with what --skip-bad does in its
// text, unless the run passes over bad samples already. Where more of them would help, the board is told the option
// with which the run's resume command goes on. Any thread, one at a time.
void with_advice(const Parts& parts, const std::function<void()>& act);

}  // namespace lockstep::train
