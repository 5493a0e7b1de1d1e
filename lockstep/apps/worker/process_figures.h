// What the kernel says of this process.
#pragma once

#include <string>

namespace lockstep::worker {

// A figure in kB of a file in /proc, in MB: "Pss:" of /proc/self/smaps_rollup. 0 if the file lacks it.
double megabytes_in(const char* path, const std::string& key);

// Memory of this process that is resident, now and at most so far, in MB.
inline double resident_mb() { return megabytes_in("/proc/self/status", "VmRSS:"); }
inline double peak_mb() { return megabytes_in("/proc/self/status", "VmHWM:"); }

// Seconds of processor time, of the program and of the kernel for it, that all threads have taken so far.
double cpu_seconds();

}  // namespace lockstep::worker
