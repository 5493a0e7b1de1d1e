// The lease by which a process acts for a run that others may take over: where nodes come and go, who has lost touch
// with them must not replace the files that those who go on write.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace lockstep {

// A variable of ranks whose launcher acts by a lease: a name that all launchers of the run have, and no other run's.
inline constexpr const char* kJobVariable = "LOCKSTEP_JOB";

// From now on this process acts by the lease whose end stands at *until_ns: boot_ns(), or 0 for one without end.
// The number outlives all that asks for it, and may change at any time. Any thread.
void act_by_lease(const std::atomic<int64_t>* until_ns);

// Ends the process (run_main.h) as soon as the lease has ended, from a thread of its own. Its launcher may stand still
// then, and others go on with what it was doing.
void end_with_lease();

// Throws IoError about `path`, which is about to be replaced, if the lease has ended. Any thread.
void check_lease(const std::string& path);

}  // namespace lockstep
