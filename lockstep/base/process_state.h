// The state of another process, as the kernel reports it.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// The kernel's fields of the process from its state on: "S 1 812 …", state, parent, group. Empty if there is no such
// process, or it ends meanwhile.
std::string process_fields(int pid);

// The letter of the process's state: R runs, S and D sleep, T and t are stopped, Z and X have ended. NUL if there is no
// such process.
char process_state(int pid);

// Whether the process is stopped: by SIGSTOP, SIGTSTP or a debugger.
bool process_stopped(int pid);

// Whether there is no such process any more, or nothing of it but its exit code.
bool process_ended(int pid);

// Whether a thread of the process is in one of these states.
bool has_thread_in(int pid, std::string_view states);

// What a process that is there does, as its threads' states tell: "computing or spinning" where one of them runs, else
// what its main thread sleeps in, as far as the kernel says so: "asleep in read (/data/a.idx)".
std::string activity_of(int pid);

}  // namespace lockstep
