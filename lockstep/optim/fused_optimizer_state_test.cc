// The state that every optimizer saves and loads.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/optim/testing/training.h"

namespace lockstep::optim {
namespace {

using ::testing::HasSubstr;
using testing::Tensors;
using testing::train;
using testing::weights;

TEST(FusedOptimizer, StateHasPyTorchsForm) {
  const Tensors p = weights();
  const auto adam = make_optimizer("adamw", p);
  EXPECT_TRUE(adam->state_dict().parameters.empty());
  train(*adam, p, 0, 2);
  const OptimizerState state = adam->state_dict();
  ASSERT_EQ(state.groups.size(), 1u);
  EXPECT_EQ(state.groups[0].parameters, (std::vector<int64_t>{0, 1, 2}));
  ASSERT_EQ(state.parameters.size(), 3u);
  std::vector<std::string> names;
  for (const NamedTensor& named : state.parameters[1].tensors) names.push_back(named.name);
  EXPECT_EQ(names, (std::vector<std::string>{"step", "exp_avg", "exp_avg_sq"}));
  const at::Tensor& step = state.parameters[1].tensors[0].value;
  EXPECT_EQ(step.dim(), 0);
  EXPECT_EQ(step.scalar_type(), at::kFloat);
  EXPECT_EQ(step.item().toDouble(), 2);
}

TEST(FusedOptimizer, AStateThatDoesNotFitChangesNothing) {
  const Tensors p = weights();
  const auto optimizer = make_optimizer("adam", p);
  train(*optimizer, p, 0, 1);
  OptimizerState state = optimizer->state_dict();
  state.groups[0].options = {{"lr", 0.7}};
  state.parameters[2].tensors[1].value = at::zeros({9});
  const std::vector<std::string> names = {"conv.weight", "conv.bias", "scale"};
  try {
    optimizer->load_state_dict(state, names);
    FAIL() << "loaded";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("scale"));
    EXPECT_THAT(error.what(), HasSubstr("exp_avg"));
  }
  EXPECT_EQ(optimizer->lr(), 1e-3);
  EXPECT_EQ(optimizer->state_dict().parameters.size(), 3u);
}

TEST(FusedOptimizer, LoadsCopies) {
  const Tensors p = weights();
  const auto a = make_optimizer("sgd", p, {{"momentum", 0.9}});
  train(*a, p, 0, 1);
  const auto b = make_optimizer("sgd", p, {{"momentum", 0.9}});
  b->load_state_dict(a->state_dict());
  const at::Tensor before = b->state_dict().parameters[0].tensors[0].value.clone();
  train(*a, p, 1, 2);
  EXPECT_TRUE(at::equal(before, b->state_dict().parameters[0].tensors[0].value));
}

}  // namespace
}  // namespace lockstep::optim
