// Whether processes run, for tests that start and kill them.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {

// A process that has ended but has not been waited for by its parent counts as gone.
inline bool alive(pid_t pid) {
  std::ostringstream stat;
  stat << std::ifstream(cat("/proc/", pid, "/stat")).rdbuf();
  const size_t name_end = stat.str().rfind(')');
  return name_end != std::string::npos && stat.str()[name_end + 2] != 'Z';
}

inline bool gone_within(const std::vector<pid_t>& pids, double seconds) {
  for (const Stopwatch watch; watch.seconds() < seconds; usleep(2000)) {
    if (std::none_of(pids.begin(), pids.end(), alive)) return true;
  }
  return false;
}

}  // namespace lockstep::launch
