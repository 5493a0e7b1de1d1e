// The processes of one attempt at a run, with the forwarding of their output and the record of their ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/guard.h"
#include "lockstep/launch/output.h"
#include "lockstep/launch/process.h"
#include "lockstep/launch/strays.h"

namespace lockstep::launch {

struct RankProcess {
  int rank;
  Child child;
  RankOutput output;
  std::optional<ExitStatus> status = std::nullopt;
  int64_t ended_ns = 0;  // Board::running_ns() at its end, by the group's owner
  bool stopped = false;  // whether the launcher stopped it because another rank failed
  bool halted = false;   // whether it was stopped by SIGSTOP or a debugger then
};

// The destructor kills all processes of the group. One thread.
class RankGroup {
 public:
  using OnEnd = std::function<void(RankProcess&)>;

  // `terminal` outlives this. Throws IoError if the guard can't be started.
  explicit RankGroup(Terminal& terminal) : mark_(run_mark()), guard_(mark_), terminal_(terminal) {}

  // Starts a rank, whose environment gets the run's mark (guard.h). Throws as the constructors of Child and RankOutput.
  void start(int rank, SpawnRequest request, RankOutput::Options output);

  // Waits, for at most `timeout_ms` (-1: no limit), until a rank writes or ends or `other_fd` (-1: none) is readable.
  // Forwards output and calls `on_end` for each rank that has ended. Returns whether `other_fd` is readable.
  bool wait(int other_fd, int timeout_ms, const OnEnd& on_end);

  bool all_ended() const;
  // Sends the signal to the groups of all ranks that have not ended.
  void signal_running(int signal);
  // Sends the signal to the group of a rank, if it has not ended: another one has failed.
  void stop(size_t rank, int signal);
  // Tells the ranks' terminals, where they have some, their new width.
  void resize(int columns);
  // Takes the remains of processes that the ranks have started and left behind.
  void reap_strays() const { strays_.reap(pids()); }
  // As Guard::lost().
  bool guard_lost() { return guard_.lost(); }
  // Forwards the rest of the output. Processes that the ranks have started, in whatever session, get `patience_ms` to
  // finish, and are then killed. To be called after all_ended().
  void finish(int patience_ms);

  const std::vector<std::unique_ptr<RankProcess>>& ranks() const { return ranks_; }

 private:
  std::vector<pid_t> pids() const;
  bool has_open_streams() const;
  bool read_stream(RankProcess& process, Terminal::Stream stream);

  std::string mark_;
  Guard guard_;
  Strays strays_;
  Terminal& terminal_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
};

}  // namespace lockstep::launch
