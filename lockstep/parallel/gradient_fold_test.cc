#include "lockstep/parallel/gradient_fold.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/error.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

RANK_PROGRAM(folds_at_once) {
  const auto world = join_world(context);
  at::manual_seed(static_cast<uint64_t>(context.rank));
  torch::nn::Linear net(3, 2);
  GradientFold fold(*net, world->communicator());
  at::manual_seed(0);
  const torch::nn::Linear first(3, 2);
  EXPECT_TRUE(at::equal(net->weight, first->weight)) << "rank 0's";
  ASSERT_EQ(fold.parameters().size(), 2u);
  net->weight.mutable_grad() = at::full({2, 3}, context.rank + 1.0f);
  fold.run();
  EXPECT_TRUE(at::equal(net->weight.grad(), at::full({2, 3}, context.size * (context.size + 1) / 2.0f)));
  EXPECT_FALSE(net->bias.grad().defined()) << "nowhere";
  if (context.rank == 1) net->bias.mutable_grad() = at::ones({2});
  try {
    fold.run();
    EXPECT_EQ(context.size, 1);
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("bias has a gradient on 1 of 3 ranks"));
  }
}

TEST(GradientFold, AddsWhatEveryRankHas) {
  for (const int size : {1, 3}) expect_ranks_pass("folds_at_once", size);
}

}  // namespace
}  // namespace lockstep::parallel
