// The processes of one run: started together, their output passed on, their ends recorded.
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

namespace lockstep::launch {

struct RankProcess {
  int rank;
  Child child;
  RankOutput output;
  std::optional<ExitStatus> status = std::nullopt;
  int64_t ended_ns = 0;
  bool stopped = false;  // the launcher ended it because of another
};

// One thread. Its end is the end of all processes in it.
class RankGroup {
 public:
  using OnEnd = std::function<void(RankProcess&)>;

  // Borrows the terminal. Throws IoError if there can be no guard.
  explicit RankGroup(Terminal& terminal) : terminal_(terminal) {}

  // Adds a rank; throws as Child and RankOutput do.
  void start(int rank, const SpawnRequest& request, RankOutput::Options output);

  // Waits for output, an end or `other_fd` to be readable, at most `timeout_ms` (-1: without end), passes output on and
  // calls `on_end` for each rank that has ended. True if `other_fd` is readable.
  bool wait(int other_fd, int timeout_ms, const OnEnd& on_end);

  bool all_ended() const;
  void signal_running(int signal);  // to all that have not ended, with what they started
  // Passes on what was written and not read yet. What the ranks started in turn gets `patience_ms` to finish, and is
  // then killed. Only after all_ended().
  void finish(int patience_ms);

  std::vector<std::unique_ptr<RankProcess>>& ranks() { return ranks_; }

 private:
  bool has_open_streams() const;
  bool read_stream(RankProcess& process, Terminal::Stream stream);

  Guard guard_;
  Terminal& terminal_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
};

}  // namespace lockstep::launch
