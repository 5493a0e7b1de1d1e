// What --resume stands for.
#pragma once

#include <optional>
#include <string>

#include "lockstep/train/options/train_options.h"

namespace lockstep::launch {

struct Resumed {
  std::string from;    // the folder of a run or a checkpoint's file
  std::string run;     // the folder of the run that it belongs to; "" for a checkpoint in no run
  bool newest = true;  // the run has no later checkpoint
  bool operator==(const Resumed&) const = default;
};

// The run that `options` resume; nothing if they resume none. Throws ConfigError if there is nothing to resume.
std::optional<Resumed> find_resumed(const train::TrainOptions& options, const std::string& runs_root = "runs");

// The config.toml of the run that `options` resume; empty if there is none. Throws as find_resumed().
std::string find_resumed_config(const train::TrainOptions& options, const std::string& runs_root = "runs");

}  // namespace lockstep::launch
