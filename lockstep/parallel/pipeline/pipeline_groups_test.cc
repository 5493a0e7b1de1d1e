#include "lockstep/parallel/pipeline/pipeline_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using testing_support::join_world;

RANK_PROGRAM(two_pipelines_of_two) {
  const auto world = join_world(context);
  const PipelineGroups groups = make_pipeline_groups(world, 2);
  EXPECT_EQ(groups.stage, context.rank % 2);
  EXPECT_EQ(groups.pipeline, context.rank / 2);
  EXPECT_EQ(groups.pipelines, 2);
  EXPECT_EQ(groups.chain->rank(), groups.stage);
  EXPECT_EQ(groups.chain->size(), 2);
  EXPECT_EQ(groups.replicas->rank(), groups.pipeline);
  EXPECT_EQ(groups.replicas->size(), 2);
}

TEST(PipelineGroups, OnePipelineAfterTheOther) { testing_support::expect_ranks_pass("two_pipelines_of_two", 4); }

RANK_PROGRAM(one_pipeline) {
  const auto world = join_world(context);
  const PipelineGroups groups = make_pipeline_groups(world, 2);
  EXPECT_EQ(groups.chain->size(), 2);
  EXPECT_EQ(groups.replicas, nullptr);
  EXPECT_THROW(make_pipeline_groups(world, 3), ConfigError);
}

TEST(PipelineGroups, OfOnePipelineHaveNoReplicas) { testing_support::expect_ranks_pass("one_pipeline", 2); }

}  // namespace
}  // namespace lockstep::parallel
