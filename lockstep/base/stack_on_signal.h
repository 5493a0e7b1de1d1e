// The stack of a process that somebody asks for it, to see where it stands still.
#pragma once

namespace lockstep {

// From now on the signal makes this process write the calls that it is in to standard error, one a line; it goes on
// then. To be called once, on any thread.
void write_stack_on(int signal);

// The same of the signals by which our launcher asks for it, where one has started this process: SIGUSR2, and SIGQUIT
// (Ctrl-\), which `lockstep launch` passes on. Elsewhere of SIGUSR2 alone.
void write_stack_for_launcher();

// Whether write_stack_for_launcher() has been called. Any thread.
bool writes_stack_for_launcher();

}  // namespace lockstep
