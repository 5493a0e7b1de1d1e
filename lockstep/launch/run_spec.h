// What a launcher is to run, and how.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/slots/keeper.h"
#include "lockstep/launch/rank_layout.h"
#include "lockstep/launch/stopping.h"

namespace lockstep::launch {

// How the first Ctrl-C, SIGTERM or SIGHUP reaches the ranks. kBoard: our workers see it on the board, finish their
// step, save a checkpoint and exit with 75. kSignal: the ranks get the signal. Asked once more (StopRequest), it
// kills them.
enum class StopBy { kBoard, kSignal };

// Why ranks must end that have not failed: another node's have.
struct MustEnd {
  std::string why;          // for people; "": they may go on
  bool at_once = false;     // they must not write anything any more
  bool for_a_peer = false;  // the others have given up waiting for a rank, which may be one of these
  // Until when they may replace files of the run, if they hear nothing later: monotonic_ns(); 0: for ever.
  int64_t lease_until_ns = 0;
};

struct RunSpec {
  std::vector<std::string> command;  // the program's path, then its arguments
  // The same of a further attempt, asked for after one that has failed; `trained`: a step had been done. Empty: the
  // command stays.
  std::function<std::vector<std::string>(bool trained)> command_again = {};
  std::string saved = {};  // the checkpoint from which the first attempt goes on, for people; "": it begins anew
  int max_restarts = 0;    // further attempts after a failure
  // How many ranks a further attempt may have where more of them keep failing; 0: as many. Empty: always as many.
  std::function<int(int ranks)> fewer = {};
  int nproc = 1;                      // at most kMaxLocalRanks
  int threads = 1;                    // OMP_NUM_THREADS and MKL_NUM_THREADS
  bool keep_threads = false;          // keep those variables if they are set already
  std::string log_dir = {};           // the folder of the logs, rank<k>.log; empty: no logs
  std::string error_dir = {};         // the folder of attempt<k>.json, written if the run fails; empty: no such file
  std::string resume_command = {};    // the command that the report advises once a checkpoint is saved
  bool only_rank0_on_stdout = false;  // whether the other ranks' standard output goes to standard error
  int answer = 0;                     // an exit code of one rank that is a result, and needs no report; 0: none is
  // Asked on run()'s thread ten times a second. Empty: nobody ends them from outside.
  std::function<MustEnd()> must_end = {};
  // Called on run()'s thread, once an attempt, when the ranks have done a first step of training. Empty: nobody asks.
  std::function<void()> on_first_step = {};
  bool quiet = false;  // whether the ranks' output is kept off the terminal; reports are shown
  StopBy stop_by = StopBy::kBoard;
  // How long a rank that writes a checkpoint, when another one fails, may go without progress before it is stopped.
  int64_t save_patience_ns = Stopping::kPatienceNs;
  int run_lock = -1;  // the descriptor of the run folder's lock, which the ranks hold as well; -1: none
  // How the launcher writes the checkpoints that the ranks leave in its memory (checkpoint/slots). Without a folder
  // they tell it theirs. Nothing: it has no such memory.
  std::optional<checkpoint::Keeper::Options> saves = {};
  int64_t timeout_ns = 0;  // without progress, after which ranks have hung and are ended; 0: they are waited for
  int64_t grace_ns = 0;    // from a request to stop on, after which ranks are killed; 0: as long as they take
  // Without a grace, of programs that got the signal: how long the others, which may wait for it, are left alone once
  // one has failed; they are ended as after any failure then. torchrun's 30 s.
  int64_t grace_of_others_ns = 30'000'000'000;
  // Whether lines come as they are printed. On a terminal the ranks' standard output is a pseudo-terminal; elsewhere
  // the environment asks for lines, and programs that use Lockstep or Python write them.
  bool lines_at_once = false;
  bool own_workers = false;  // the ranks are this project's: their lines may be broken where a terminal is narrow
  std::optional<RankLayout> layout = {};  // of `lockstep launch`: ranks of several nodes, other launchers' variables
  int in_fd = -1;                         // rank 0's standard input; -1: it is empty, as the others' are
  int out_fd = 1;                         // the launcher's own streams
  int err_fd = 2;
};

}  // namespace lockstep::launch
