#include "lockstep/optim/rules/sgd.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::optim {
namespace {

at::Tensor parameter(float value) { return at::full({3}, value).requires_grad_(); }

void step(SGD& optimizer, const at::Tensor& p, float gradient) {
  p.mutable_grad() = at::full({3}, gradient);
  optimizer.update({});
}

// By hand: buffer 2, then 0.5 · 2 + 0.75 · 4 = 4.
TEST(Sgd, DampensAllGradientsButTheFirst) {
  const at::Tensor p = parameter(10);
  SGD optimizer({p}, {.lr = 1, .momentum = 0.5, .dampening = 0.25});
  step(optimizer, p, 2);
  EXPECT_EQ(p[0].item().toFloat(), 8);
  step(optimizer, p, 4);
  EXPECT_EQ(p[0].item().toFloat(), 4);
}

// By hand: buffer 2, step 2 + 0.5 · 2 = 3; buffer 0.5 · 2 + 4 = 5, step 4 + 0.5 · 5 = 6.5.
TEST(Sgd, NesterovLooksAhead) {
  const at::Tensor p = parameter(10);
  SGD optimizer({p}, {.lr = 1, .momentum = 0.5, .nesterov = true});
  step(optimizer, p, 2);
  EXPECT_EQ(p[0].item().toFloat(), 7);
  step(optimizer, p, 4);
  EXPECT_EQ(p[0].item().toFloat(), 0.5);
}

TEST(Sgd, KeepsNoStateWithoutMomentum) {
  const at::Tensor p = parameter(10);
  SGD optimizer({p}, {.lr = 1, .weight_decay = 0.5});
  step(optimizer, p, 1);
  EXPECT_EQ(p[0].item().toFloat(), 4);  // 10 - (1 + 0.5 · 10)
  EXPECT_TRUE(optimizer.state_dict().parameters.empty());
}

TEST(Sgd, TakesABufferThatPyTorchSavedAsNone) {
  const at::Tensor p = parameter(10);
  SGD optimizer({p}, {.lr = 1, .momentum = 0.5, .dampening = 0.25});
  OptimizerState state = optimizer.state_dict();
  state.parameters.push_back({.index = 0, .tensors = {{"momentum_buffer", at::Tensor()}}});
  optimizer.load_state_dict(state);
  step(optimizer, p, 2);
  EXPECT_EQ(p[0].item().toFloat(), 8);
}

}  // namespace
}  // namespace lockstep::optim
