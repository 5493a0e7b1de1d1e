#include "lockstep/optim/rules/adam.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::optim {
namespace {

at::Tensor step_once(FusedOptimizer& optimizer, const at::Tensor& p, double gradient) {
  p.mutable_grad() = at::full_like(p, gradient);
  optimizer.update({});
  return p.detach();
}

// The first step of Adam is lr whatever the size of the gradient.
TEST(Adam, CorrectsTheBiasOfItsAverages) {
  for (const double gradient : {1e-3, 1.0, 1e3}) {
    const at::Tensor p = at::full({19}, 1.0).requires_grad_();
    Adam optimizer({p}, {.lr = 0.25, .eps = 0});
    EXPECT_TRUE(at::allclose(step_once(optimizer, p, gradient), at::full({19}, 0.75)));
  }
}

TEST(Adam, WeightDecayIsPartOfTheGradientAndOfAdamWIsNot) {
  const at::Tensor p = at::full({19}, 1.0).requires_grad_();
  Adam adam({p}, {.lr = 0.25, .eps = 0, .weight_decay = 0.5});
  EXPECT_TRUE(at::allclose(step_once(adam, p, 1e-3), at::full({19}, 0.75)));

  const at::Tensor q = at::full({19}, 1.0).requires_grad_();
  AdamW adamw({q}, {.lr = 0.25, .eps = 0, .weight_decay = 0.5});
  EXPECT_TRUE(at::allclose(step_once(adamw, q, 1e-3), at::full({19}, 1 - 0.25 * 0.5 - 0.25)));
}

TEST(Adam, AmsgradKeepsTheLargestSquare) {
  const at::Tensor p = at::zeros({19}).requires_grad_();
  Adam optimizer({p}, {.betas = {0.9, 0.5}, .amsgrad = true});
  step_once(optimizer, p, 8);
  step_once(optimizer, p, 0);
  const std::vector<NamedTensor> state = optimizer.state_dict().parameters[0].tensors;
  ASSERT_EQ(state.size(), 4u);
  EXPECT_EQ(state[2].value[0].item().toFloat(), 16);
  EXPECT_EQ(state[3].name, "max_exp_avg_sq");
  EXPECT_EQ(state[3].value[0].item().toFloat(), 32);
}

TEST(Adam, AmsgradTurnedOnLaterStartsFromNothing) {
  const at::Tensor p = at::zeros({19}).requires_grad_();
  Adam optimizer({p}, {});
  step_once(optimizer, p, 1);
  static_cast<Group<AdamOptions>&>(optimizer.param_groups()[0].options()).values.amsgrad = true;
  step_once(optimizer, p, 1);
  EXPECT_EQ(optimizer.state_dict().parameters[0].tensors.size(), 4u);
}

}  // namespace
}  // namespace lockstep::optim
