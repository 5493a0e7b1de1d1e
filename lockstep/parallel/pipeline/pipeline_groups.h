// The ranks of a world as pipelines, one after the other: ranks 0 and 1 are the first one's two stages.
#pragma once

#include <memory>

#include "lockstep/world/world.h"

namespace lockstep::parallel {

struct PipelineGroups {
  int stage = 0, pipeline = 0, pipelines = 1;  // this rank's, and how many there are
  std::shared_ptr<World> chain;                // the stages of its pipeline
  std::shared_ptr<World> replicas;             // the ranks that have its stage; null where there is one pipeline
};

// A collective. Throws ConfigError unless `stages` divides the world's ranks.
PipelineGroups make_pipeline_groups(const std::shared_ptr<World>& world, int stages);

}  // namespace lockstep::parallel
