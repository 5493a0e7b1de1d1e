// A run of training that would go on for hours, for tests that end it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "program.h"
#include "runs.h"

namespace lockstep::e2e {

// Options of a run that is long enough for everything that is done to it.
inline const Words kEndless = {"--epochs", "1000000", "--save-every", "1000000epochs", "--eval-every", "1000000epochs"};

// The process of a rank that `program` has started; -1 if there is none.
pid_t worker_of(const Program& program, int rank);

// Kills the process that `rank` gives as soon as its memory maps something of such a name ("lockstep-pool"), and sets
// `killed` to it: false if none but the one that was killed before gets there in time.
bool kill_at(const std::string& point, const std::function<pid_t()>& rank, pid_t& killed,
             std::chrono::seconds patience = std::chrono::seconds(60));

// Sends it a signal. Throws IoError where `pid` is none, for kill(-1) is a signal to all.
void signal_to(pid_t pid, int number);

// Keeps a process stopped (SIGSTOP) as long as it lives: a launcher that is asked to stop wakes ranks that somebody has
// stopped once.
class Held {
 public:
  explicit Held(pid_t pid);  // throws IoError where there is none

 private:
  std::jthread thread_;
};

struct EndlessRun {
  explicit EndlessRun(int nproc);

  std::string folder() const { return dir / "run"; }
  bool is_training() const;  // waits until a few steps are done; false if that takes too long
  pid_t worker(int rank) const { return worker_of(program, rank); }

  TempDir dir;
  Program program;
};

}  // namespace lockstep::e2e
