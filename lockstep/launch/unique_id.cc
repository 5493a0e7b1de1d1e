#include "lockstep/launch/unique_id.h"

#include <unistd.h>

#include <fstream>

#include "lockstep/base/clock.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {

// Without /proc the process and the time have to do.
std::string unique_id() {
  std::string id;
  std::ifstream file("/proc/sys/kernel/random/uuid");
  return std::getline(file, id) ? id : cat(getpid(), '-', monotonic_ns());
}

}  // namespace lockstep::launch
