// Against libtorch's own: fused_optimizer_test.cc.
#include "lockstep/optim/rules/rmsprop.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::optim {
namespace {

std::vector<std::string> state_names(const RmspropOptions& options) {
  const at::Tensor p = at::ones({3}).requires_grad_();
  RMSprop optimizer({p}, options);
  p.mutable_grad() = at::ones({3});
  optimizer.update({});
  std::vector<std::string> names;
  const OptimizerState state = optimizer.state_dict();
  for (const NamedTensor& named : state.parameters[0].tensors) names.push_back(named.name);
  return names;
}

// By hand: square_avg 0.25 · 16 = 4, then 0.75 · 4 + 0.25 · 4 = 4.
TEST(RMSprop, DividesByTheRootOfTheAverageSquare) {
  const at::Tensor p = at::full({5}, 10.0).requires_grad_();
  RMSprop optimizer({p}, {.lr = 1, .alpha = 0.75, .eps = 0});
  p.mutable_grad() = at::full({5}, 4.0);
  optimizer.update({});
  EXPECT_EQ(p[0].item<float>(), 8);
  p.mutable_grad() = at::full({5}, -2.0);
  optimizer.update({});
  EXPECT_EQ(p[0].item<float>(), 9);
}

TEST(RMSprop, KeepsTheStateThatItsOptionsNeed) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(state_names({}), (Names{"step", "square_avg"}));
  EXPECT_EQ(state_names({.centered = true}), (Names{"step", "square_avg", "grad_avg"}));
  EXPECT_EQ(state_names({.momentum = 0.5}), (Names{"step", "square_avg", "momentum_buffer"}));
}

// Recorded from torch.optim.RMSprop of PyTorch 2.11.
TEST(RMSprop, FollowsPyTorch) {
  const at::Tensor p = at::tensor({1.0F, -0.5F, 0.25F, 2.0F}).requires_grad_();
  RMSprop optimizer({p}, {.lr = 0.05, .alpha = 0.9, .weight_decay = 0.01, .momentum = 0.8, .centered = true});
  for (int t = 0; t < 5; ++t) {
    p.mutable_grad() = at::tensor({0.5F, -1.0F, 0.125F, t % 2 == 0 ? 0.75F : -0.75F}) * (t + 1);
    optimizer.update({});
  }
  EXPECT_TRUE(at::allclose(p, at::tensor({-0.77581257F, 1.2772272F, -1.5242335F, 1.6433566F}), 1e-6, 1e-7)) << p;
}

}  // namespace
}  // namespace lockstep::optim
