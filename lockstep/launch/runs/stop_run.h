// Ends a run under way from outside.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "lockstep/launch/runs/run_facts.h"

namespace lockstep::launch {

struct StopOptions {
  bool now = false;  // kills the ranks a second after the request
  std::chrono::milliseconds timeout{600'000};
};

// Asks the process that has taken the lock of the run in `folder` to end the run, as SIGTERM does, and returns what is
// known of it when the last of its processes has ended. Of a launcher that is stopped (Ctrl-Z) it has the run go on,
// for it hears nothing. `tell` gets a line for people if that takes more than a second. Throws ConfigError, and leaves
// everything as it is, for a run that is not under way, one of another host, and a lock whose process is not one of the
// run's; IoError for a process that may not be signalled, CommError after `timeout`.
RunFacts stop_run(const std::string& folder, const StopOptions& options,
                  const std::function<void(const std::string& line)>& tell);

// Returns the command that goes on with a stopped run, as its log says it last, options included; empty if it says
// none. Pure.
std::string resume_command_in(std::string_view log);

// What there is to say of a run that has been stopped: how it ended, what is saved, and how to go on. Lines with
// newlines. `checkpoint`: the newest one, empty if there is none; `command`: as resume_command_in(). Pure.
std::string stopped_text(const RunFacts& run, const std::string& checkpoint, const std::string& command);

}  // namespace lockstep::launch
