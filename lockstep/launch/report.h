// What the launcher says when a run fails: the root cause first. Pure functions of how the ranks ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/launch/process.h"

namespace lockstep::launch {

struct RankOutcome {
  int rank = 0;
  pid_t pid = 0;
  ExitStatus status;
  double ended = 0;      // seconds since the run's start
  bool stopped = false;  // by the launcher, because of another rank
  uint64_t step = 0;     // this and the rest as the rank left it on the board
  std::string doing;
  std::string error;     // its own line, without "error: "
  std::string overflow;  // the last step that its loss scaler skipped
};

// Leaves on the board, for peers and reports, how a rank ended that may not have said so itself. True if it failed.
bool note_end(BoardRank& said, const ExitStatus& status);
// What is known from the board and from how the process ended: status, step, doing, error.
RankOutcome outcome_on(const BoardRank& said, const ExitStatus& status);

// The rank whose failure explains the others': of those that failed by themselves the first that did not merely miss a
// peer (CommError), otherwise the first. Nothing if none failed.
std::optional<size_t> root_cause(std::span<const RankOutcome> outcomes);

// Of the whole run: the root cause's, otherwise 75 if a rank stopped on request, otherwise 0.
int exit_code(std::span<const RankOutcome> outcomes);

// A mistake of the user's, or a file that isn't as it should be, noticed before any training: its line says it all.
bool is_plain_mistake(const RankOutcome& outcome);

struct Report {
  std::vector<RankOutcome> outcomes;
  size_t root = 0;
  std::string oom;                     // "out of memory (…)" where that is known
  double stop_seconds = 0;             // from the failure to the end of the last rank
  std::string saved;                   // the newest checkpoint; "" if there is none
  std::string log_path;                // of the root cause's rank; "" if there is none
  std::deque<std::string> last_lines;  // of what it wrote
  std::string resume_command;          // how to go on from what was saved; "" if nobody knows
};

std::string headline(const Report& report);  // "rank 3 (pid 812) was killed by SIGKILL"
std::string to_text(const Report& report);   // in the form of DESIGN.md §5, with "error: "; ends with a newline
std::string to_json(const Report& report);   // one object, for errors/attempt<k>.json

}  // namespace lockstep::launch
