#include "lockstep/loop/optimizer_values.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/formats/value_view.h"
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

// Of a checkpoint that is opened, not read: what is large goes from the file to the optimizer, whatever its layout
// there.
TEST(OptimizerValues, ComeStraightFromAFile) {
  const testing_support::TempDir dir;
  const at::Tensor weight = at::ones({4, 64, 16, 16}).requires_grad_();
  const auto optimizer = stepped("adamw", weight);
  const checkpoint::OptimizerState state = to_values(optimizer->state_dict());
  checkpoint::write_pt(checkpoint::optimizer_to_dict(state), dir / "a.pt");
  const checkpoint::Value opened = checkpoint::open_checkpoint(dir / "a.pt");
  const auto values = checkpoint::optimizer_from_dict(checkpoint::ValueView(opened, "a.pt"));
  EXPECT_TRUE(checkpoint::is_stored(*values.parameters[0].find("exp_avg")->get_if<at::Tensor>()));
  for (const auto layout : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor other = at::ones_like(weight).contiguous(layout).requires_grad_();
    auto loaded = optim::make_optimizer("adamw", {other});
    loaded->load_state_dict(from_values(values, "a.pt"));
    const checkpoint::OptimizerState again = to_values(loaded->state_dict());
    for (const char* name : {"exp_avg", "exp_avg_sq"}) {
      const auto *got = again.parameters[0].find(name), *saved = state.parameters[0].find(name);
      ASSERT_TRUE(got != nullptr && saved != nullptr) << name;
      EXPECT_TRUE(at::equal(*got->get_if<at::Tensor>(), *saved->get_if<at::Tensor>())) << name;
    }
  }
}

// Named parameters, capturable's rate, and steps that are numbers.
TEST(OptimizerValues, ComeFromOtherVersionsOfPyTorch) {
  checkpoint::OptimizerState state;
  state.groups.push_back(
      {checkpoint::Dict{{"lr", at::full({}, 0.25)}, {"param_names", checkpoint::List{"weight"}}}, 1});
  state.parameters.resize(1);
  state.parameters[0].set("step", int64_t{7});
  state.parameters[0].set("exp_avg", at::ones({3}));
  state.parameters[0].set("exp_avg_sq", at::ones({3}));
  auto adam = optim::make_optimizer("adam", {at::ones({3}).requires_grad_()});
  adam->load_state_dict(from_values(state, "a.pt"));
  EXPECT_EQ(adam->lr(), 0.25);
  const checkpoint::OptimizerState again = to_values(adam->state_dict());
  const auto* step = again.parameters[0].find("step");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->get_if<at::Tensor>()->item<double>(), 7);
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
