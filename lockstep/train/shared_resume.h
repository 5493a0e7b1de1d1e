// Checkpoints that all ranks agree on: the one that a run resumes from, whatever disks their nodes have, and others.
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

// find_checkpoint() (continuation.h) by rank 0: of a run under way another rank may find a newer one. Warnings are on
// rank 0 alone. A collective. Throws as that one on all ranks.
NamedCheckpoint find_checkpoint(const std::string& name, const std::string& path, World& world);

}  // namespace lockstep::train
