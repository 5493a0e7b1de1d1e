// Where a run of several ranks takes place, and from where it goes on: rank 0 decides, by what all ranks know.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lockstep/base/log.h"
#include "lockstep/cli/train_line.h"
#include "lockstep/launch/run_directory.h"
#include "lockstep/train/folder/run_lock.h"
#include "lockstep/world/world.h"

namespace lockstep::cli {

// The ownership of the run's folder.
struct Folder {
  std::optional<train::RunLock> of_front;           // lockstep's front has prepared it
  std::optional<launch::RunDirectory> of_launcher;  // rank 0 has, where another launcher started the ranks
  std::string done;                                 // why there is nothing to do, and no folder; on all ranks
};

// Prepares the run's folder on rank 0, unless the front has done so. All ranks then read the line with the options of
// the run that goes on, whichever they took it for, and have the same --out and --resume. Where an earlier start has
// not ended, rank 0 waits for it, until `stop_asked`. Throws ConfigError, IoError, CommError. A collective.
Folder take_folder(World& world, TrainLine& line, const Logger& log, const std::function<bool()>& stop_asked);

}  // namespace lockstep::cli
