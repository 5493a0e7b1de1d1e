// What a run's files say of it, while it is under way and afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/train/folder/run_lock.h"

namespace lockstep::launch {

enum class RunState {
  kUnderWay,
  kFinished,  // it has trained to its end
  kStopped,   // on request
  kFailed,    // with a report in errors/
  kKilled,    // without any of these: its launcher was killed, or the machine went down
  kNotBegun,  // before its first step
};

// "under way", "finished", …
std::string_view word_of(RunState state);

// When files of a run were last written, in nanoseconds since 1970; 0: there is none.
struct RunTimes {
  int64_t metrics = 0;
  int64_t results = 0;      // final.json
  int64_t interrupted = 0;  // INTERRUPTED.pt
  int64_t error = 0;        // the newest report in errors/
};

// Returns how a run ended whose lock is free. A run that goes on leaves the files of its earlier ends, and writes
// metrics after them: so the newest file tells. Pure.
RunState end_of_run(const RunTimes& times);

// The last of metrics.jsonl.
struct LastSteps {
  int64_t step = 0;  // 0: none
  int64_t epoch = 0;
  std::optional<double> loss = {};                // of that step
  std::optional<double> samples_per_second = {};  // of the last twenty steps
  std::optional<double> seconds_a_step = {};      // of these
};

// Reads the last records of a metrics.jsonl, of which `text` is the end; its first and last line may be cut off. Pure.
LastSteps last_steps(std::string_view text);

// Returns the steps in all of "… step 70/300 …", the last such line in `text`; 0 if there is none. Pure.
int64_t total_steps(std::string_view log);

struct RunFacts {
  std::string folder;
  std::string recipe = {};  // empty: not known
  RunState state = RunState::kNotBegun;
  train::LockOwner owner = {};
  int ranks = 0;        // 0: not known
  LastSteps last = {};  // done
  int64_t epochs = 0;   // in all; 0: not known
  int64_t steps = 0;    // in all; 0: not known
  int64_t since = 0;    // seconds since 1970 of the present start, or of the last; 0: not known
};

// Reads the facts of the run in `folder`. What can't be read is not known. Any thread.
RunFacts facts_of_run(const std::string& folder);

}  // namespace lockstep::launch
