#include "lockstep/parallel/state_broadcast.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

RANK_PROGRAM(broadcast) {
  const auto world = testing_support::join_world(context);
  torch::nn::BatchNorm1d norm(3);
  const at::NoGradGuard no_grad;
  norm->weight.fill_(context.rank);
  norm->running_var.fill_(10 + context.rank);
  broadcast_state(*norm, world->communicator(), 1);
  EXPECT_TRUE(at::equal(norm->weight, at::full({3}, 1.0f)));
  EXPECT_TRUE(at::equal(norm->running_var, at::full({3}, 11.0f)));
}

TEST(StateBroadcast, GivesParametersAndBuffersToAll) { testing_support::expect_ranks_pass("broadcast", 3); }

}  // namespace
}  // namespace lockstep::parallel
