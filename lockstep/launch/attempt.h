// One attempt at a run: its ranks, from their start to the last one's end, with the memory and the port that they
// share. A restart is a further attempt, with all of these anew.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/base/stop_request.h"
#include "lockstep/launch/kept_slots.h"
#include "lockstep/launch/launched_ranks.h"
#include "lockstep/launch/oom.h"
#include "lockstep/launch/output.h"
#include "lockstep/launch/progress_watch.h"
#include "lockstep/launch/rank_group.h"
#include "lockstep/launch/report.h"
#include "lockstep/launch/run_spec.h"
#include "lockstep/launch/signals.h"
#include "lockstep/launch/stopping.h"

namespace lockstep::launch {

// Which attempt it is, and its ranks.
struct Assignment {
  int number = 0;        // counts the attempts
  int nproc = 1;         // at most kMaxLocalRanks
  std::string saved;     // the newest checkpoint that there is before it, for people; "": none
  bool trained = false;  // whether an earlier attempt has done a step
};

// That somebody wants the run to end. It spans all attempts.
struct Stop {
  StopRequest request;
  int64_t first_ns = 0;  // monotonic_ns() of the first request
  int signal = 0;        // the last one that counted
  bool quit = false;     // SIGQUIT was passed on to programs that are not ours, which end by it unless they handle it
  bool at_once = false;  // the run was asked to stop once more
  bool out_of_grace = false;   // the ranks were killed for it
  bool failed_before = false;  // with either of these: a rank had failed by then, which the report tells
};

// To be used on one thread, while no other thread handles signals.
class Attempt {
 public:
  // The references outlive this; `slots` may be null.
  Attempt(const RunSpec& spec, const Assignment& assignment, Terminal& terminal, Stop& stop, KeptSlots* slots);
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt();

  // Starts the ranks with this command, forwards their output, and returns when the last of them has ended. When a rank
  // fails, the others end within a second; one that writes a checkpoint, by the board, first finishes it. What the
  // ranks have left to be saved is then written, and after a failure, or when the grace was too short, the newest
  // snapshot. To be called once. Throws ConfigError or IoError if the ranks can't be started.
  void run(const std::vector<std::string>& command, SignalWatch& signals);

  // After run(): how the ranks ended.
  std::vector<RankOutcome> outcomes() const;
  bool failed() const { return failure_.begun() && failed_in_stop_ns_ == 0; }  // before it was asked to stop, if it was
  // Whether ranks that a signal was passed on to have failed by something else: by another signal, or so that others
  // had to be ended.
  bool failed_in_stop() const { return died_in_stop_ || (failure_.begun() && failed_in_stop_ns_ != 0); }
  bool trained() const { return assignment_.trained || board_->first_step_ns.load() != 0; }
  // The furthest step that a rank has done or that is saved; -1 where neither is known. `counts_steps`: it is known
  // that the ranks' program tells them, by an earlier attempt.
  int64_t progress(bool counts_steps) const;
  // Whether `root` failed for the port that was drawn for the ranks, which somebody had taken by the time when the
  // first of the command's programs listened.
  bool drawn_port_was_taken(const RankOutcome& root) const;
  // Whether the ranks' program tells its steps, also before the first one.
  bool counts_steps() const;
  // Whether everything that was to be saved is on the disk, or has failed: no write hangs.
  bool at_rest() const { return slots_ == nullptr || slots_->keeper().at_rest(); }
  // The folder of the ranks' run, where they have told it; else "".
  std::string told_run() const { return slots_ == nullptr ? "" : slots_->told_run(); }
  bool must_not_write() const { return must_not_write_; }            // the lease has ended: others act for the run
  const std::string& snapshot() const { return snapshot_; }          // saved after the ranks' end, for people
  const std::string& newest_saved() const { return newest_saved_; }  // what made that needless, for people
  const Board& board() const { return *board_; }

  // Completes a report of these outcomes by what is known of rank `report.root`, and adds the headline to its log.
  void describe(Report& report) const;
  // Lets the ranks' processes and pipes go. board() stays.
  void let_go() { group_.reset(); }

 private:
  // The number of a local rank in the world, which may have other nodes.
  int rank_in_world(int local_rank) const { return local_rank + (spec_.layout ? spec_.layout->first_rank : 0); }
  void start_all(const std::vector<std::string>& command);
  void on_signals(SignalWatch& signals);
  void on_signal(const SignalWatch& signals, int signal);
  void on_stop_signal(int signal);
  void on_end(RankProcess& process);
  void pause(const SignalWatch& signals);
  void resize();
  void signal_all(int signal);
  void stop_others();
  void tell_of_save(size_t rank);
  void tell_of_first_step();
  int wait_ms() const;
  bool ended_badly() const { return failure_.begun() || stop_.out_of_grace || failed_in_stop_ns_ != 0; }
  void end_grace();
  std::vector<bool> running() const;
  void note_first_failure(const RankProcess& process);
  void note_failure_in_stop(const RankProcess& process);
  void end_others_in_stop();
  void note_halted();
  void watch();
  std::optional<MustEnd> ask_others();
  void end_from_outside();
  void end_hang(const ProgressWatch::Hang& hang);
  void ask_for_stacks();
  void ask_for_stack(const RankProcess& process) const;
  void await_saves(SignalWatch& signals);
  void save_snapshot(SignalWatch& signals);
  std::string try_to_save_snapshot(SignalWatch& signals);
  RankOutcome outcome_of(const RankProcess& process) const;

  const RunSpec& spec_;
  const Assignment assignment_;
  Terminal& terminal_;
  Stop& stop_;
  KeptSlots* slots_;
  OomWatch oom_;
  std::optional<LaunchedRanks> launched_;  // of `lockstep launch`
  std::optional<RankGroup> group_;         // before its shared memory, which its guard must not hold
  NodeMemory memory_;
  Mapping board_memory_;
  Board* board_ = nullptr;
  int drawn_port_ = 0;
  int64_t started_ns_ = 0, failed_ns_ = 0;  // Board::running_ns() of the start and of the first failure

  std::optional<ProgressWatch> watch_;
  std::optional<ProgressWatch::Hang> hang_;  // that the launcher has ended
  bool failed_for_others_ = false;           // the first rank that failed did so because it missed another one
  int64_t failed_in_stop_ns_ = 0;            // monotonic_ns() of the first failure after a passed-on signal
  bool died_in_stop_ = false;                // one of these was by a signal
  int64_t asked_others_ns_ = 0;              // monotonic_ns() of the last question whether the ranks must end
  bool must_not_write_ = false;              // others go on with the run
  int64_t looked_ns_ = 0;                    // monotonic_ns() of the last look at the ranks' progress
  Stopping failure_;                         // begun when the first rank failed
  std::string first_failure_;                // "rank 1 was killed by SIGKILL"
  bool told_of_save_ = false;
  bool told_of_first_step_ = false;
  int64_t snapshot_step_ = -1;
  std::string snapshot_, newest_saved_;
};

}  // namespace lockstep::launch
