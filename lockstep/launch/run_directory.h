// The folder of a run. It is chosen, created and proved writable before any process is started.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/options/train_options.h"

namespace lockstep::launch {

class RunDirectory {
 public:
  // Creates the folder that `options` ask for, with checkpoints/, logs/ and errors/:
  //   --out DIR                 that folder; ConfigError if it holds a run already and --resume is not given
  //   --resume DIR | FILE       without --out: the folder of the resumed run
  //   --resume                  the newest run of the recipe under `runs_root` (or --out) that has a checkpoint
  //   none of them              runs_root/<recipe>-<n>, the next free n
  // Throws ConfigError or IoError, and then leaves nothing behind.
  static RunDirectory prepare(const train::TrainOptions& options, const std::string& runs_root = "runs");

  const std::string& path() const { return path_; }
  std::string logs() const { return path_ + "/logs"; }
  std::string errors() const { return path_ + "/errors"; }
  // The folder of a run or the checkpoint's file from which to resume; nothing for a fresh run.
  const std::optional<std::string>& resume() const { return resume_; }

  // Removes the folders that prepare() created if they hold no checkpoint, metrics or results, because a mistake ended
  // the run before it began.
  void discard_if_unused() const;

 private:
  void remember(const std::string& made);

  std::string path_;
  std::optional<std::string> resume_;
  std::vector<std::string> made_;  // folders that were not there before; removed with their subfolders
};

// What --resume stands for.
struct Resumed {
  std::string from;  // the folder of a run or a checkpoint's file
  std::string run;   // the folder of the run that it belongs to; "" for a checkpoint in no run
  bool operator==(const Resumed&) const = default;
};

// The run that `options` resume; nothing if they resume none. Throws ConfigError if there is nothing to resume.
std::optional<Resumed> find_resumed(const train::TrainOptions& options, const std::string& runs_root = "runs");

// The config.toml of the run that `options` resume; empty if there is none. Throws as find_resumed().
std::string find_resumed_config(const train::TrainOptions& options, const std::string& runs_root = "runs");

// Throws ConfigError if a file or folder that the options name does not exist.
void check_inputs(const train::TrainOptions& options);

}  // namespace lockstep::launch
