// What the kernel says of another process.
#pragma once

namespace lockstep {

// The letter of its state: R runs, S and D sleep, T and t are stopped, Z and X have ended; NUL for one that does not
// exist.
char process_state(int pid);

// Whether the process is stopped: by SIGSTOP, SIGTSTP or a debugger.
bool process_stopped(int pid);

}  // namespace lockstep
