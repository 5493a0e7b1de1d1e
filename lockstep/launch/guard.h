// A tiny process that outlives the launcher by a moment: if the launcher dies, even by kill -9, it kills the groups of
// all workers. The kernel itself kills the workers (Child); the guard is for what they have started in turn.
#pragma once

#include <sys/types.h>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

class Guard {
 public:
  // Forks: to be made before anything that the guard must not hold on to, as shared memory. Throws IoError.
  Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard();  // sends it home; it kills nobody then

  void watch(pid_t group);  // one more group, of at most kMaxLocalRanks

 private:
  pid_t pid_ = -1;
  Descriptor lifeline_;
};

}  // namespace lockstep::launch
