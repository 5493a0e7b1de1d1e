#include "lockstep/base/lower_priority.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep {

void lower_priority() {
  constexpr int kBy = 10, kLowest = 19;  // each one is a fifth less
  const int now = getpriority(PRIO_PROCESS, static_cast<id_t>(getpid()));
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), std::min(now + kBy, kLowest));
}

}  // namespace lockstep
