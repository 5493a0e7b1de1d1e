#include "lockstep/loop/optimizer_values.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::loop {
namespace {

// An optimizer after one step, with the state that its kind has.
std::unique_ptr<optim::FusedOptimizer> stepped(const std::string& name, const at::Tensor& weight) {
  auto optimizer = optim::make_optimizer(name, {weight}, {{"lr", 0.1}});
  weight.mutable_grad() = at::ones_like(weight);
  optimizer->update({});
  return optimizer;
}

TEST(OptimizerValues, GoThereAndBack) {
  for (const std::string& name : optim::optimizer_names()) {
    const at::Tensor weight = at::ones({3}).requires_grad_();
    const auto optimizer = stepped(name, weight);
    const auto there = to_values(optimizer->state_dict());
    ASSERT_EQ(there.groups.size(), 1u);
    EXPECT_EQ(there.groups[0].parameters, 1u);
    const at::Tensor other = at::ones({3}).requires_grad_();
    auto loaded = optim::make_optimizer(name, {other}, {{"lr", 0.7}});
    loaded->load_state_dict(from_values(there, "a.pt"));
    EXPECT_EQ(loaded->lr(), 0.1) << name;
    const auto one = optimizer->state_dict(), two = loaded->state_dict();
    ASSERT_EQ(one.parameters.size(), two.parameters.size()) << name;
    for (size_t p = 0; p < one.parameters.size(); ++p) {
      for (size_t i = 0; i < one.parameters[p].tensors.size(); ++i) {
        EXPECT_EQ(one.parameters[p].tensors[i].name, two.parameters[p].tensors[i].name);
        if (!one.parameters[p].tensors[i].value.defined()) continue;
        EXPECT_TRUE(at::equal(one.parameters[p].tensors[i].value, two.parameters[p].tensors[i].value)) << name;
      }
    }
  }
}

TEST(OptimizerValues, WhatIsNoOptionIsRefused) {
  checkpoint::OptimizerState state;
  state.groups.push_back({checkpoint::Dict{{"lr", checkpoint::Dict{}}}, 1});
  state.parameters.resize(1);
  EXPECT_THROW(from_values(state, "a.pt"), DataError);
  state.groups[0].options = checkpoint::Dict{{"lr", 0.1}};
  state.parameters[0].set("momentum_buffer", "text");
  EXPECT_THROW(from_values(state, "a.pt"), DataError);
}

}  // namespace
}  // namespace lockstep::loop
