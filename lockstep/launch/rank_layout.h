// How the ranks that `lockstep launch` starts on this node are numbered, what other launchers' variables say of them,
// and where their output goes. Plain data, the same for all attempts at a run.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lockstep::launch {

// Which of a rank's two streams something is for, as bits.
enum StreamBits { kNoStream = 0, kOutStream = 1, kErrStream = 2, kBothStreams = 3 };

// The files of the ranks' output. Local ranks are the keys; those that a map lacks have the value of kOthers.
struct LogLayout {
  enum class Kind {
    kRank,     // DIR/rank<global rank>.log
    kWorker,   // DIR/workerlog.<local rank>, as Paddle names them
    kTorchrun  // DIR/attempt_<n>/<local rank>/stdout.log and stderr.log, where DIR is this launch's own
  };
  static constexpr int kOthers = -1;

  Kind kind = Kind::kRank;
  std::string folder = {};  // DIR; empty: there are no files
  std::map<int, int> redirected = {},
                     teed = {};  // with kTorchrun: streams that go to files; `teed` ones are shown, too
  std::vector<int> shown = {};   // local ranks whose output is shown; empty: all
  // With kTorchrun: lines with one of these go to attempt_<n>/filtered_stdout.log and filtered_stderr.log as well.
  std::vector<std::string> stdout_filters = {}, stderr_filters = {};
};

struct RankLayout {
  int first_rank = 0;                                                             // of this node
  int world_size = 0;                                                             // 0: this node's ranks are all
  int size_with(int nproc) const { return world_size > 0 ? world_size : nproc; }  // of so many ranks of this node
  int node = 0, nodes = 1;
  int restarts = 0;       // of all nodes together, before this launcher's first attempt
  int max_restarts = -1;  // of all nodes together; -1: this launcher's own
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  // 0: a free port of this machine, another one for each attempt
  std::string role = "default", run_id = "none";
  std::string job = {};  // LOCKSTEP_JOB: a name that no other launch has, of nodes that come and go; empty: the front's
  std::string signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";  // TORCHELASTIC_SIGNALS_TO_HANDLE
  std::vector<std::string> endpoints = {};                // Paddle's, of all ranks; empty: free ports of this machine
  bool on_cpu = false;                                    // whether it is known that there are no GPUs
  std::vector<std::string> devices = {};                  // CUDA_VISIBLE_DEVICES of all ranks; empty: it stays as it is
  bool virtual_local_rank = false;                        // whether each rank sees one GPU, as local rank 0
  std::string local_rank_option = {};       // "--local-rank": PROGRAM gets it with a value; empty: it does not
  size_t option_place = 1;                  // where among the command's words that option goes
  std::vector<std::vector<int>> cpus = {};  // that each local rank may run on; empty: this process's
  LogLayout logs = {};
};

}  // namespace lockstep::launch
