// The checkpoint that all ranks of a run resume from: one of them, whatever disks their nodes have.
#pragma once

#include <string>

#include "lockstep/train/continuation.h"
#include "lockstep/train/run_disks.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

// Reads on all ranks the checkpoint that `resume` names on the sources of `disks`: the newest where each names one of
// its own. They decide, for the run that it belongs to may be under way and write others meanwhile. Ranks whose node
// does not have that very file get it from one that has, and a saver keeps it as one of its run's, where the run goes
// on in its folder `out`. A source alone knows of its damaged ones. A collective. Throws as read_resumed() on all
// ranks, on each its own or that of the first source.
ResumedCheckpoint read_resumed(const std::string& resume, World& world, const RunDisks& disks, const std::string& out,
                               const checkpoint::ReadOptions& options = {});

}  // namespace lockstep::train
