#include "lockstep/parallel/pipeline/pipeline_groups.h"

#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

std::shared_ptr<World> group_of(const std::shared_ptr<World>& world, const std::vector<int>& ranks) {
  return std::make_shared<World>(world, world->communicator().make_group(ranks));
}

}  // namespace

PipelineGroups make_pipeline_groups(const std::shared_ptr<World>& world, int stages) {
  const int size = world->size();
  if (stages < 1 || size % stages != 0) {
    throw ConfigError("pipeline: ", size, " ranks are no pipelines of ", stages, " stages each");
  }
  PipelineGroups groups{
      .stage = world->rank() % stages, .pipeline = world->rank() / stages, .pipelines = size / stages};
  std::vector<int> chain, replicas;
  for (int i = 0; i < stages; ++i) chain.push_back(groups.pipeline * stages + i);
  for (int i = 0; i < groups.pipelines; ++i) replicas.push_back(i * stages + groups.stage);
  groups.chain = group_of(world, chain);
  if (groups.pipelines > 1) groups.replicas = group_of(world, replicas);
  return groups;
}

}  // namespace lockstep::parallel
