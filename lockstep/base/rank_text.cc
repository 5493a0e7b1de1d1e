#include "lockstep/base/rank_text.h"

#include "lockstep/base/process_state.h"
#include "lockstep/base/text.h"

namespace lockstep {

std::string state_text(const BoardRank& rank) {
  const int pid = rank.pid.load();
  if (pid == 0) return "has not started";
  const char state = process_state(pid);
  if (state == 'T' || state == 't') return cat("is stopped (SIGSTOP; kill -CONT ", pid, ")");
  if (state == '\0' || state == 'Z' || state == 'X') return "is dead";
  const std::string doing = rank.doing.get();
  const uint64_t step = rank.step.load();
  return cat("is alive, ", step == 0 ? "" : cat("at step ", step, ", "), doing.empty() ? activity_of(pid) : doing,
             state == 'D' ? ", in a call that the kernel does not end (a disk, a network file system?)" : "");
}

}  // namespace lockstep
