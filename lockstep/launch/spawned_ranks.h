// The ranks of a world that this process has started, with the thread that starts them and watches over them: the
// kernel kills a child when the thread that made it ends, so that must not be the caller's.
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
#include "lockstep/launch/escalation.h"
#include "lockstep/launch/process.h"

namespace lockstep::launch {

class SpawnedRanks {
 public:
  // Starts `nproc` copies of `request`'s program; each gets the request's environment with its rank's variables, and
  // the descriptors of the world's memory. Throws ConfigError, IoError.
  SpawnedRanks(const SpawnRequest& request, int nproc);
  ~SpawnedRanks() { terminate(); }

  const std::vector<pid_t>& pids() const { return pids_; }  // by rank

  // The two of Spawned (spawn.h). One thread.
  void wait();
  void terminate();

 private:
  struct Rank {
    Child child;
    std::optional<ExitStatus> status = std::nullopt;
    int64_t ended_ns = 0;
    bool stopped = false;  // because of another, or of terminate()
  };

  void start_all(SpawnRequest request, int nproc);
  void watch();
  bool all_ended() const;
  void wait_for_news();
  void stop_running(int signal);
  void conclude();

  NodeMemory memory_;
  Mapping board_memory_;
  Board* board_;
  Descriptor wake_;  // terminate()'s, for the thread
  std::vector<pid_t> pids_;
  bool terminated_ = false;
  std::thread thread_;

  // The thread's own until it is joined.
  std::vector<std::unique_ptr<Rank>> ranks_;
  Escalation escalation_;
  std::optional<Error> failure_;
};

}  // namespace lockstep::launch
