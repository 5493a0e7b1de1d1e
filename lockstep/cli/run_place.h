// Where a run of several ranks takes place, and from where it goes on: rank 0 decides, by what all ranks know. With
// --save-on node each node has a folder of the run, and the first node that has begun it decides.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lockstep/base/log.h"
#include "lockstep/cli/train_line.h"
#include "lockstep/launch/run_directory.h"
#include "lockstep/train/folder/run_lock.h"
#include "lockstep/train/run_disks.h"
#include "lockstep/world/world.h"

namespace lockstep::cli {

// The ownership of the run's folder.
struct Folder {
  std::optional<train::RunLock> of_front;           // lockstep's front has prepared it
  std::optional<launch::RunDirectory> of_launcher;  // this rank has, where another launcher started the ranks
  train::RunDisks disks = {};                       // where one is, and where the run that goes on is
  std::string done;                                 // why there is nothing to do, and no folder; on all ranks
};

// Prepares the run's folder, unless the front has done so. All ranks then read the line with the options of
// the run that goes on, whichever they took it for, and have the same --out and --resume. Where an earlier start has
// not ended, it is waited for, until `stop_asked`. Throws ConfigError, IoError, CommError. A collective.
Folder take_folder(World& world, TrainLine& line, const Logger& log, const std::function<bool()>& stop_asked);

}  // namespace lockstep::cli
