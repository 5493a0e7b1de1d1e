#include "lockstep/optim/rules/adagrad.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::optim {
namespace {

// By hand: sum 9 then 25; rates 1 and 1 / (1 + 1 · 1) = 0.5.
TEST(Adagrad, DividesByTheRootOfTheSumAndDecays) {
  const at::Tensor p = at::full({5}, 10.0).requires_grad_();
  Adagrad optimizer({p}, {.lr = 1, .lr_decay = 1, .eps = 0});
  p.mutable_grad() = at::full({5}, 3.0);
  optimizer.update({});
  EXPECT_EQ(p[0].item().toFloat(), 9);
  p.mutable_grad() = at::full({5}, 4.0);
  optimizer.update({});
  EXPECT_FLOAT_EQ(p[0].item().toFloat(), 8.6F);  // 9 - 0.5 · 4 / 5
}

TEST(Adagrad, HasItsStateFromTheStart) {
  const at::Tensor p = at::zeros({2, 2}).requires_grad_();
  const Adagrad optimizer({p}, {.initial_accumulator_value = 0.5});
  const OptimizerState state = optimizer.state_dict();
  ASSERT_EQ(state.parameters.size(), 1u);
  ASSERT_EQ(state.parameters[0].tensors.size(), 2u);
  EXPECT_EQ(state.parameters[0].tensors[0].name, "step");
  EXPECT_EQ(state.parameters[0].tensors[0].value.item().toFloat(), 0);
  EXPECT_EQ(state.parameters[0].tensors[1].name, "sum");
  EXPECT_TRUE(at::equal(state.parameters[0].tensors[1].value, at::full({2, 2}, 0.5)));
}

}  // namespace
}  // namespace lockstep::optim
