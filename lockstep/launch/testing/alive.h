// Tests that start and kill processes: whether these are alive.
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

// Whether the process runs. One that has ended counts as gone even if its parent has not reaped it.
inline bool alive(pid_t pid) {
  std::ostringstream stat;
  stat << std::ifstream(cat("/proc/", pid, "/stat")).rdbuf();
  const size_t name_end = stat.str().rfind(')');
  return name_end != std::string::npos && stat.str()[name_end + 2] != 'Z';
}

// Whether all of the processes are gone within `seconds`.
inline bool gone_within(const std::vector<pid_t>& pids, double seconds) {
  for (const Stopwatch watch; watch.seconds() < seconds; usleep(2000)) {
    if (std::none_of(pids.begin(), pids.end(), alive)) return true;
  }
  return false;
}

}  // namespace lockstep::launch
