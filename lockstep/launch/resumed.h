// What --resume stands for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/launched_job.h"
#include "lockstep/train/folder/run_lock.h"
#include "lockstep/train/options/train_options.h"

namespace lockstep::launch {

struct Resumed {
  std::string from;    // the folder of a run or a checkpoint's file
  std::string run;     // the folder of the run that it belongs to; "" for a checkpoint in no run
  bool newest = true;  // the run has no later checkpoint
  bool operator==(const Resumed&) const = default;
};

// Of the commands that have run in a folder the one of which this process is a further start: one with its command
// line. If only one command has run there, not in this start, the line may ask for other --steps or --epochs: a script
// may compute them anew.
std::optional<train::JobCommand> find_earlier_command(const std::vector<train::JobCommand>& commands,
                                                      const std::vector<LaunchedJob>& jobs);

// A start of one of `jobs`. It is found by a look into the folders of all runs, once for all that depends on it.
struct Start {
  std::vector<LaunchedJob> jobs = {};
  std::string runs_root = "runs";
  std::string earlier = {};  // where an earlier start has begun the run; empty if none has
  // Where that has not ended: a line for people while it is waited for, and whether the wait is to end.
  std::function<void(const std::string&)> say = [](const auto&) {};
  std::function<bool()> stop_asked = [] { return false; };
};

// The earlier start's folder is that of the run that these options ask for, with or without a checkpoint:
//   --out DIR      that folder
//   --resume …     the folder of the resumed run, if the start went on in it
//   else           the newest under `runs_root` that this command line has begun; failing that, the one that a line of
//                  another length has begun, if there is only one
// It is one that was begun by this process's command line (find_earlier_command()), for a job may have several. A later
// one of them may have gone on there since (find_done()).
Start find_start(const train::TrainOptions& options, const std::string& runs_root = "runs",
                 const std::vector<LaunchedJob>& jobs = find_jobs());

// Why there is nothing to do for a further start, as a line for people; empty if there is: its command has trained to
// its end, and a later one of the job has gone on in the folder of its run. Throws ConfigError, which names both
// commands, if a later one has gone on before this one's end.
std::string find_done(const Start& start);

// The run that `options` resume; nothing if they resume none. A further start resumes the run that the earlier one has
// begun if that has a checkpoint, whatever --resume named at first. Throws ConfigError if there is nothing to resume.
std::optional<Resumed> find_resumed(const train::TrainOptions& options, const Start& start);

// The config.toml of the run that `options` resume; empty if there is none. Throws as find_resumed().
std::string find_resumed_config(const train::TrainOptions& options, const Start& start);

// The same for a rank that can't ask the others yet, `jobs` being its own: where nothing is found by these, an earlier
// start by the same command line counts whichever of torchrun's agents it had, for one of them may be another rank's.
// To be compared with what find_resumed_config() finds by all ranks' jobs.
std::string guess_resumed_config(const train::TrainOptions& options, const std::string& runs_root = "runs",
                                 const std::vector<LaunchedJob>& jobs = find_jobs());

// --load's value for a further attempt of the run in `folder`: the file that the run's config.toml names, where `load`
// is a folder, for that may hold newer checkpoints by now. `warn` gets a line where that file is gone.
std::string same_load(const std::string& load, const std::string& folder,
                      const std::function<void(const std::string&)>& warn);

}  // namespace lockstep::launch
