// Processes that the ranks have started and that have left their process groups (setsid, daemons): they stay children
// of this process, which can end them, because it adopts those whose parents have ended (PR_SET_CHILD_SUBREAPER).
#pragma once

#include <sys/types.h>

#include <vector>

namespace lockstep::launch {

// One thread. Children that this process had before are left alone.
class Strays {
 public:
  Strays();
  Strays(const Strays&) = delete;
  Strays& operator=(const Strays&) = delete;
  ~Strays();  // as end(), with nothing to spare; then this process adopts no longer

  // Takes the remains of strays that have ended. `ranks`: children that are no strays.
  void reap(const std::vector<pid_t>& ranks) const;
  // Kills all strays, with all that they have started, and waits for their ends; gives up after `seconds`, for a
  // process in the middle of a system call may not end.
  void end(const std::vector<pid_t>& ranks, double seconds = 1) const;

 private:
  std::vector<pid_t> strays(const std::vector<pid_t>& ranks) const;

  std::vector<pid_t> before_;
  int adopted_before_ = 0;
};

}  // namespace lockstep::launch
