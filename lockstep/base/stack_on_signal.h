// The stack of a process that somebody asks for it, to see where it stands still.
#pragma once

namespace lockstep {

// From now on the signal makes this process write the calls that it is in to standard error, one a line; it goes on
// then. To be called once, on any thread.
void write_stack_on(int signal);

}  // namespace lockstep
