// The ranks of a world that this process has spawned, with a thread that starts and watches them. The kernel kills a
// child when the thread that started it ends, so that can't be a thread of the caller's.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/launch/process.h"
#include "lockstep/launch/stopping.h"

namespace lockstep::launch {

class SpawnedRanks {
 public:
  // Starts `nproc` copies of the request's program. Each gets the request's environment with the rank's variables, and
  // the descriptors of the node's memory. Throws ConfigError, IoError.
  SpawnedRanks(const SpawnRequest& request, int nproc);
  ~SpawnedRanks() { terminate(); }

  const std::vector<pid_t>& pids() const { return pids_; }  // by rank

  // Implement Spawned's members of the same names (spawn.h). One thread.
  void wait();
  void terminate();

 private:
  struct Rank {
    Child child;
    std::optional<ExitStatus> status = std::nullopt;
    int64_t ended_ns = 0;
    bool stopped = false;  // whether it was stopped because another rank failed, or by terminate()
  };

  void start_all(SpawnRequest request, int nproc);
  void watch();
  bool all_ended() const;
  void wait_for_news();
  void stop(Rank& rank, int signal);
  void conclude();

  NodeMemory memory_;
  Mapping board_memory_;
  Board* board_;
  Descriptor wake_;  // by which terminate() wakes the thread
  std::vector<pid_t> pids_;
  bool terminated_ = false;
  std::thread thread_;

  // Used by the thread alone until it is joined.
  std::vector<std::unique_ptr<Rank>> ranks_;
  Stopping stopping_;
  std::optional<Error> failure_;
};

}  // namespace lockstep::launch
