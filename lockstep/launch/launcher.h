// The launcher: runs N copies of a program as the ranks of one world on this machine, and ends them together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/base/stop_request.h"
#include "lockstep/checkpoint/slots/keeper.h"
#include "lockstep/checkpoint/slots/slots.h"
#include "lockstep/launch/oom.h"
#include "lockstep/launch/output.h"
#include "lockstep/launch/rank_group.h"
#include "lockstep/launch/report.h"
#include "lockstep/launch/signals.h"
#include "lockstep/launch/stopping.h"

namespace lockstep::launch {

class Launcher {
 public:
  // How the first Ctrl-C, SIGTERM or SIGHUP reaches the ranks. kBoard: our workers see it on the board, finish their
  // step, save a checkpoint and exit with 75. kSignal: the ranks get the signal. Asked once more (StopRequest), it
  // kills them.
  enum class StopBy { kBoard, kSignal };

  struct Options {
    std::vector<std::string> command;   // the program's path, then its arguments
    int nproc = 1;                      // at most kMaxLocalRanks
    int threads = 1;                    // OMP_NUM_THREADS and MKL_NUM_THREADS
    bool keep_threads = false;          // keep those variables if they are set already
    std::string log_dir = {};           // the folder of the logs, rank<k>.log; empty: no logs
    std::string error_dir = {};         // the folder of attempt<k>.json, written if the run fails; empty: no such file
    std::string resume_command = {};    // the command that the report advises once a checkpoint is saved
    bool only_rank0_on_stdout = false;  // whether the other ranks' standard output goes to standard error
    int answer = 0;                     // an exit code of one rank that is a result, and needs no report; 0: none is
    bool quiet = false;                 // whether the ranks' output is kept off the terminal; reports are shown
    StopBy stop_by = StopBy::kBoard;
    // How long a rank that writes a checkpoint, when another one fails, may go without progress before it is stopped.
    int64_t save_patience_ns = Stopping::kPatienceNs;
    int run_lock = -1;  // the descriptor of the run folder's lock, which the ranks hold as well; -1: none
    // Where the launcher writes the checkpoints that the ranks leave in its memory (checkpoint/slots). An empty folder:
    // it has no such memory.
    checkpoint::Keeper::Options saves = {};
    int64_t grace_ns = 0;  // from a request to stop on, after which ranks are killed; 0: as long as they take
    // Whether lines come as they are printed. On a terminal the ranks' standard output is a pseudo-terminal; elsewhere
    // the environment asks for lines, and programs that use Lockstep or Python write them.
    bool lines_at_once = false;
    bool own_workers = false;  // the ranks are this project's: their lines may be broken where a terminal is narrow
    int in_fd = -1;            // rank 0's standard input; -1: it is empty, as the others' are
    int out_fd = 1;            // the launcher's own streams
    int err_fd = 2;
  };

  explicit Launcher(Options options);

  // Starts the ranks, forwards their output, and returns the run's exit code when the last of them has ended: 0, 75,
  // the root cause's (128+N if signal N killed it), or 128+N if signal N stopped the run. When a rank fails, the others
  // end within a second; one that writes a checkpoint, by the board, first finishes it. What the ranks have left to be
  // saved is then written, and after a failure, or when the grace was too short, the newest snapshot. Rank 0's standard
  // output is forwarded unchanged; all other lines get the prefix "[rank k] " if there are several ranks. Ctrl-Z stops
  // the ranks with the launcher, and they go on with it. A reader of the launcher's output that stands still holds up
  // the ranks only if there are no logs. To be called once, on the main thread, with no other thread that handles
  // signals. Throws ConfigError or IoError if the ranks can't be started.
  int run();

  // After run(): the board as the ranks left it.
  const Board& board() const { return *board_; }
  // After run(): whether a mistake of the user's ended the run before it began.
  bool ended_by_plain_mistake() const { return plain_mistake_; }

 private:
  void start_all(RankGroup& group);
  void supervise(RankGroup& group);
  void on_signals(RankGroup& group, SignalWatch& signals);
  void on_end(RankProcess& process);
  void pause(RankGroup& group, const SignalWatch& signals);
  void resize(RankGroup& group);
  void on_signal(RankGroup& group, const SignalWatch& signals, int signal);
  void on_stop_signal(RankGroup& group, int signal);
  void signal_all(RankGroup& group, int signal);
  bool is_answer(int code) const;
  void check_output();
  void stop_others(RankGroup& group);
  void tell_of_save(size_t rank);
  int wait_ms() const;
  void end_grace(RankGroup& group);
  void await_saves(RankGroup& group, SignalWatch& signals);
  void keep_slots();
  void save_snapshot(RankGroup& group, SignalWatch& signals);
  int conclude_grace();
  int conclude(RankGroup& group, const OomWatch& oom);
  RankOutcome outcome_of(const RankProcess& process) const;
  void write_report_file(const std::string& json) const;

  Options options_;
  Terminal terminal_;
  NodeMemory memory_;
  Mapping board_memory_;
  Board* board_ = nullptr;
  Descriptor slot_memory_;
  std::shared_ptr<checkpoint::Slots> slots_;
  std::optional<checkpoint::Keeper> keeper_;  // it tells the board
  int64_t started_ns_ = 0, failed_ns_ = 0;    // Board::running_ns() of the run's start and of the first failure

  Stopping failure_;           // begun when the first rank failed
  std::string first_failure_;  // "rank 1 was killed by SIGKILL"
  bool told_of_save_ = false;
  StopRequest stop_;
  int64_t stop_ns_ = 0;         // monotonic_ns() of the first request
  bool out_of_grace_ = false;   // the ranks were killed for it
  int stop_signal_ = 0;         // the last one that counted
  bool at_once_ = false;        // the run was asked to stop once more
  bool failed_before_ = false;  // with either: a rank had failed by then, which the report tells
  std::string snapshot_;        // what was saved of the ranks' newest snapshot, for people; "": nothing
  std::string newest_saved_;    // the checkpoint that made it needless, for people; "": none
  bool plain_mistake_ = false;
};

}  // namespace lockstep::launch
