// The guard: a tiny process that outlives the launcher by a moment. If the launcher dies, even by kill -9, the guard
// kills the process groups of all workers. The kernel kills the workers themselves (Child); the guard ends the
// processes that they have started, those outside the groups by their mark in the environment.
#pragma once

#include <sys/types.h>

#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

class Guard {
 public:
  // Forks the guard. `mark` is an entry "NAME=value" of the environment that the workers get and pass on, as
  // run_mark() makes it; "" for none. To be constructed before any resource that the guard must not hold, such as
  // shared memory. Throws IoError.
  explicit Guard(const std::string& mark = "");
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  // Dismisses the guard, which then kills nobody.
  ~Guard();

  // Returns true once if somebody has killed the guard: the kernel still ends the workers with the launcher, but nobody
  // ends what they have started.
  bool lost();

  // Adds a process group. Throws BugError for more than kMaxLocalRanks in all.
  void watch(pid_t group);

 private:
  pid_t pid_ = -1;  // -1: lost
  int watched_ = 0;
  Descriptor lifeline_;
};

// An entry of the environment that no other run's processes have: "LOCKSTEP_LAUNCH=<pid>.<time>".
std::string run_mark();

}  // namespace lockstep::launch
