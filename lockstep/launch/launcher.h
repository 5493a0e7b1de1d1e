// The launcher: runs N copies of a program as the ranks of one world on this machine, ends them together, and starts
// them anew where that may help.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/launch/attempt.h"
#include "lockstep/launch/kept_slots.h"
#include "lockstep/launch/output.h"
#include "lockstep/launch/restart_policy.h"
#include "lockstep/launch/run_spec.h"
#include "lockstep/launch/signals.h"

namespace lockstep::launch {

class Launcher {
 public:
  using Options = RunSpec;
  using StopBy = launch::StopBy;

  explicit Launcher(Options options);

  // Runs the ranks (Attempt::run()), and again after a failure while RestartPolicy grants it. Each failed attempt is
  // reported. Returns the run's exit code: 0, 75, the root cause's of the last attempt (128+N if signal N killed it),
  // or 128+N if signal N stopped the run. Rank 0's standard output is forwarded unchanged; all other lines get the
  // prefix "[rank k] " if there are several ranks. Ctrl-Z stops the ranks with the launcher, and they go on with it. A
  // reader of the launcher's output that stands still holds up the ranks only if there are no logs. To be called once,
  // on the main thread, while no other thread handles signals. Throws ConfigError or IoError if the ranks can't be
  // started.
  int run();

  // After run(): the board as the last attempt's ranks left it.
  const Board& board() const { return attempt_->board(); }
  // After run(): whether a signal has asked it to end: also a passed-on SIGQUIT of which ranks have died.
  bool was_asked_to_stop() const { return stop_.request.asked() || ended_by_quit_; }
  // After run(): the furthest step that is known of the last attempt; -1: none is.
  int64_t progress() const { return progress_; }
  // After run(): whether a mistake of the user's ended the run before it began.
  bool ended_by_plain_mistake() const { return plain_mistake_; }
  // After run(): whether the failure that ended it would come again, on any node.
  bool would_fail_again() const { return would_fail_again_; }

 private:
  int try_until_done();
  int fixed_port() const;
  void await_port(const SignalWatch& signals);
  std::vector<std::string> command_of(const Assignment& next) const;
  int conclude(bool* again);
  int conclude_grace();
  Report report_of(const std::vector<RankOutcome>& outcomes, size_t root) const;
  RestartPolicy::Verdict ask_policy(const Report& report);
  bool is_saved() const;
  void tell(const Report& report);
  bool is_answer(int code) const;
  void check_output();
  void write_report_file(const std::string& json) const;

  Options options_;
  Terminal terminal_;
  Stop stop_;
  RestartPolicy policy_;
  std::optional<KeptSlots> slots_;
  std::unique_ptr<Attempt> attempt_;  // the last one, which uses the others
  int nproc_;                         // of the next attempt
  std::string program_;               // what tells the ranks' program from another one of its name
  bool plain_mistake_ = false;
  bool would_fail_again_ = false;
  bool ended_by_quit_ = false;
  bool counts_steps_ = false;  // Attempt's, in one of them
  int64_t progress_ = -1;      // of the last attempt
};

}  // namespace lockstep::launch
