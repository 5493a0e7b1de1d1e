// The priority of threads that work beside a training run.
#pragma once

namespace lockstep {

// Gives the calling thread a tenth of the time that the process's other threads get where they leave no core free, and
// all that these leave.
void lower_priority();

}  // namespace lockstep
