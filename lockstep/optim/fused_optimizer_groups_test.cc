// The groups of an optimizer, each with options of its own, and what it can be asked for.
#include <gtest/gtest.h>
#include <torch/optim.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/rules/adam.h"
#include "lockstep/optim/rules/sgd.h"
#include "lockstep/optim/testing/training.h"

namespace lockstep::optim {
namespace {

using testing::Tensors;
using testing::train;
using testing::weights;

TEST(FusedOptimizer, OverflowsAreForDevicesAndNotForAverages) {
  const Tensors p = weights();
  for (const at::Tensor& parameter : p) parameter.mutable_grad() = at::ones_like(parameter);
  SGD sgd(p, SgdOptions{.momentum = 0.9});
  EXPECT_FALSE(sgd.takes_overflow()) << "of the CPU";
  sgd.step_as_on_gpus();
  EXPECT_TRUE(sgd.takes_overflow());
  sgd.keep_average(0.5);
  EXPECT_FALSE(sgd.takes_overflow());
}

TEST(FusedOptimizer, GroupsKeepTheirOwnOptions) {
  const Tensors p = weights();
  SGD optimizer({param_group(Tensors{p[0]}, SgdOptions{.lr = 0.5}), torch::optim::OptimizerParamGroup({p[1]})},
                SgdOptions{.lr = 0.25});
  for (const at::Tensor& parameter : p) parameter.mutable_grad() = at::ones_like(parameter);
  optimizer.update({});
  EXPECT_TRUE(at::allclose(p[0], weights()[0] - 0.5));
  EXPECT_TRUE(at::allclose(p[1], weights()[1] - 0.25));
  optimizer.set_lr(0);
  EXPECT_EQ(optimizer.lr(), 0);
  optimizer.update({});
  EXPECT_TRUE(at::allclose(p[0], weights()[0] - 0.5));
}

TEST(FusedOptimizer, TakesAGroupThatComesLater) {
  const Tensors p = weights();
  SGD optimizer({p[0]}, SgdOptions{.lr = 1, .momentum = 0.5});
  train(optimizer, {p[0]}, 0, 1);
  optimizer.add_param_group(torch::optim::OptimizerParamGroup({p[1]}));
  p[1].mutable_grad() = at::ones_like(p[1]);
  optimizer.update({});
  EXPECT_TRUE(at::allclose(p[1], weights()[1] - 1));
}

TEST(FusedOptimizer, RefusesTheOptionsOfAnotherOptimizer) {
  auto group = torch::optim::OptimizerParamGroup(weights(), std::make_unique<torch::optim::SGDOptions>(0.1));
  EXPECT_THROW(SGD(std::vector{group}), ConfigError);
  EXPECT_THROW(SGD({param_group(weights(), AdamOptions{})}), ConfigError);
}

}  // namespace
}  // namespace lockstep::optim
