#include "lockstep/nn/eval_mode.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace lockstep::nn {
namespace {

TEST(EvalMode, GivesEveryLayerItsOwnModeBack) {
  struct Net : torch::nn::Module {
    torch::nn::Sequential inner =
        register_module("inner", torch::nn::Sequential(torch::nn::BatchNorm1d(2), torch::nn::Linear(2, 2)));
    torch::nn::Linear last = register_module("last", torch::nn::Linear(2, 2));
  } net;
  net.inner[0]->eval();  // frozen
  {
    const EvalMode eval({&net});
    EXPECT_FALSE(net.is_training());
    for (const auto& module : net.modules(/*include_self=*/false)) EXPECT_FALSE(module->is_training());
  }
  EXPECT_TRUE(net.is_training() && net.inner->is_training() && net.inner[1]->is_training() && net.last->is_training());
  EXPECT_FALSE(net.inner[0]->is_training());
}

}  // namespace
}  // namespace lockstep::nn
