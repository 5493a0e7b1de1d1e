// The launcher's report on a failed run, with the root cause first. Pure functions of how the ranks ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/launch/output.h"
#include "lockstep/launch/process.h"

namespace lockstep::launch {

// How a rank ended, and its last state on the board.
struct RankOutcome {
  int rank = 0;
  pid_t pid = 0;
  ExitStatus status;
  double ended = 0;        // seconds since the run's start, without those of a pause (Ctrl-Z)
  bool stopped = false;    // whether the launcher stopped it because another rank failed
  bool halted = false;     // whether it was stopped by SIGSTOP or a debugger when another rank failed
  bool spared = false;     // whether the launcher let it save first
  bool trained = false;    // whether the run has done a step
  uint64_t step = 0;       // this and the fields below are from the board
  std::string doing;       // what the rank was doing
  std::string error;       // the rank's own error, without "error: "
  std::string role = {};   // BoardRank's
  std::string overflow;    // the last step that its loss scaler skipped
  std::string remedy;      // options that the command which goes on needs besides: "--skip-bad 4"
  bool lost_peer = false;  // tells_of_lost_peer() its last lines
};

// Whether the line that a program of any kind wrote last says that its connection to another one has broken, or that it
// has waited in vain, as Gloo's, NCCL's and the system's errors do. Pure.
bool tells_of_lost_peer(const std::deque<RankOutput::LastLine>& lines);

// How a rank ended, from the board where its process's own end can't be known (ExitStatus::lost).
ExitStatus status_of(const BoardRank& said, const ExitStatus& status);
// Records on the board how a rank ended, for peers and reports, if the rank has not done so itself. Returns whether the
// rank failed.
bool note_end(BoardRank& said, const ExitStatus& status);
// The outcome from the rank's entry on the board and from how its process ended; rank, pid, `ended`, `stopped`,
// `spared` and `trained` are left to the caller.
RankOutcome outcome_on(const BoardRank& said, const ExitStatus& status);

// The index of the rank whose failure explains the others'. Among the ranks that failed by themselves it is the first
// that did not merely miss a peer (CommError, lost_peer), or else the first; where it only passes on what another rank
// has told all ("rank 0: …", world/once.h), that one. Nothing if no rank failed.
std::optional<size_t> root_cause(std::span<const RankOutcome> outcomes);

// The exit code of the whole run: the root cause's, otherwise 75 if a rank stopped on request, otherwise 0.
int exit_code(std::span<const RankOutcome> outcomes);

// Whether a mistake of the user's, or a bad file, ended the rank before the first step was done, so that its error line
// says all.
bool is_plain_mistake(const RankOutcome& outcome);

struct Report {
  std::vector<RankOutcome> outcomes;
  size_t root = 0;                              // the index of the root cause
  std::string oom;                              // OomWatch::verdict()
  double failed = 0;                            // the first failure, in the seconds of RankOutcome::ended
  std::string saved;                            // the newest checkpoint; "" if there is none
  std::string log_path;                         // the log of the root cause's rank; "" if there is none
  std::deque<RankOutput::LastLine> last_lines;  // the last lines that this rank wrote
  std::string resume_command;                   // the command that resumes from the checkpoint; "" if it is not known
  std::string restart;                          // "restart 1 of 3", or why there is none; "" if none was to be
  bool restarts = false;                        // whether another attempt follows
};

std::string headline(const Report& report);  // "rank 3 (pid 812) was killed by SIGKILL"
std::string to_text(const Report& report);   // in the form of DESIGN.md §5, with "error: "; ends with a newline
std::string to_json(const Report& report);   // one object, for errors/attempt<k>.json

// Completes a report by the file in which Python's torch.distributed.elastic `record` leaves what its program threw:
// its error and, in place of the last lines, the traceback as a whole. Without that file, or another's, it stays as it
// is.
void read_recorded_error(const std::string& path, Report& report);

}  // namespace lockstep::launch
