// The guard: a tiny process that outlives the launcher by a moment. If the launcher dies, even by kill -9, the guard
// kills the process groups of all workers. The kernel kills the workers themselves (Child); the guard ends the
// processes that they have started.
#pragma once

#include <sys/types.h>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

class Guard {
 public:
  // Forks the guard. To be constructed before any resource that the guard must not hold, such as shared memory. Throws
  // IoError.
  Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  // Dismisses the guard, which then kills nobody.
  ~Guard();

  // Adds a process group. Throws BugError for more than kMaxLocalRanks in all.
  void watch(pid_t group);

 private:
  pid_t pid_ = -1;
  int watched_ = 0;
  Descriptor lifeline_;
};

}  // namespace lockstep::launch
