// The folder of a run: chosen, made and proved writable before any process is started.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/options/train_options.h"

namespace lockstep::launch {

class RunDirectory {
 public:
  // Makes the folder that `options` ask for, with checkpoints/, logs/ and errors/:
  //   --out DIR                 that one; ConfigError if it holds a run already and nothing says --resume
  //   --resume DIR | FILE       without --out: the run that is resumed
  //   --resume                  the newest run of the recipe under `runs_root` (or --out) that has a checkpoint
  //   none of them              runs_root/<recipe>-<n>, the next free n
  // Throws ConfigError or IoError, and leaves nothing behind then.
  static RunDirectory prepare(const train::TrainOptions& options, const std::string& runs_root = "runs");

  const std::string& path() const { return path_; }
  std::string logs() const { return path_ + "/logs"; }
  std::string errors() const { return path_ + "/errors"; }
  // What --resume stands for: an existing folder of a run or a checkpoint's file; nothing for a fresh run.
  const std::optional<std::string>& resume() const { return resume_; }

  // Removes what was made here if the folder holds neither checkpoint, metrics nor results: a run that a
  // mistake ended before it began.
  void discard_if_unused() const;

 private:
  void remember(const std::string& made);

  std::string path_;
  std::optional<std::string> resume_;
  std::vector<std::string> made_;  // folders that were not there before; their subfolders go with them
};

// What --resume stands for, and the run that it belongs to: "" for a checkpoint that lies in none.
struct Resumed {
  std::string from, run;
  bool operator==(const Resumed&) const = default;
};

// Nothing where `options` resume none. Throws ConfigError if there is nothing to resume.
std::optional<Resumed> find_resumed(const train::TrainOptions& options, const std::string& runs_root = "runs");

// The file of the options that the resumed run had; empty where there is none. Throws as find_resumed().
std::string find_resumed_config(const train::TrainOptions& options, const std::string& runs_root = "runs");

// Throws ConfigError if a file or folder that the options name is not there.
void check_inputs(const train::TrainOptions& options);

}  // namespace lockstep::launch
