#include "lockstep/optim/rules/lars.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::optim {
namespace {

// The paper's formulas, in fp64: the gradient's local rate, then SGD.
void reference_step(const LarsOptions& o, at::Tensor& p, at::Tensor& buffer, at::Tensor g) {
  const double weight = p.norm().item<double>(), gradient = g.norm().item<double>();
  if (o.adapt && weight > 0 && gradient > 0) {
    const double trust = o.trust_coefficient * weight / (gradient + o.weight_decay * weight + o.eps);
    g = trust * (g + o.weight_decay * p);
  } else if (!o.adapt) {
    g = g + o.weight_decay * p;
  }
  buffer = buffer.defined() ? o.momentum * buffer + g : g;
  p = p - o.lr * (o.nesterov ? g + o.momentum * buffer : buffer);
}

// With these options, and whether as on GPUs.
class LarsFollows : public testing::TestWithParam<std::tuple<LarsOptions, bool>> {};

TEST_P(LarsFollows, TheFormulas) {
  const auto& [options, as_on_gpus] = GetParam();
  at::manual_seed(1);
  for (const double size : {1.0, 0.0}) {
    const at::Tensor p = (at::randn({30, 40}) * size).requires_grad_();
    at::Tensor expected = p.detach().to(at::kDouble), buffer;
    Lars optimizer({p}, options);
    if (as_on_gpus) optimizer.step_as_on_gpus();
    for (int step = 0; step < 6; ++step) {
      const at::Tensor g = at::randn({30, 40}) * (step == 4 ? 0 : 1);
      p.mutable_grad() = g * 1024;
      optimizer.update({.grad_multiplier = 1.0 / 1024, .clip_value = 1});
      reference_step(options, expected, buffer, g.to(at::kDouble).clamp(-1, 1));
      EXPECT_TRUE(at::allclose(p.detach().to(at::kDouble), expected, 1e-5, 1e-6)) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Options, LarsFollows,
                         testing::Combine(testing::Values(LarsOptions{.lr = 10}, LarsOptions{.lr = 10, .momentum = 0},
                                                          LarsOptions{.lr = 10, .weight_decay = 0.01, .nesterov = true},
                                                          LarsOptions{.lr = 0.1, .weight_decay = 0.01, .adapt = false}),
                                          testing::Bool()));

TEST(Lars, WithoutAdaptingIsSgd) {
  const at::Tensor p = at::ones({50}).requires_grad_(), q = at::ones({50}).requires_grad_();
  Lars lars({p}, {.lr = 0.1, .weight_decay = 0.01, .adapt = false});
  SGD sgd({q}, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  for (int step = 0; step < 3; ++step) {
    for (const at::Tensor& each : {p, q}) each.mutable_grad() = at::full({50}, step + 0.3);
    lars.update({});
    sgd.update({});
  }
  EXPECT_TRUE(at::equal(p, q));
}

// As the ratio has it: a step's length does not depend on the gradient's.
TEST(Lars, TheRatioTakesTheGradientsSizeAway) {
  for (const double size : {1e-3, 1.0, 1e3}) {
    const at::Tensor p = at::ones({16}).requires_grad_();
    Lars optimizer({p}, {.lr = 1, .trust_coefficient = 0.5, .eps = 0});
    p.mutable_grad() = at::full({16}, size);
    optimizer.update({});
    EXPECT_TRUE(at::allclose(p, at::full({16}, 0.5)));
  }
}

TEST(Lars, RefusesOptionsOutOfRange) {
  EXPECT_NO_THROW(LarsOptions{}.check());
  for (const LarsOptions& bad :
       {LarsOptions{.lr = -1}, LarsOptions{.trust_coefficient = -1}, LarsOptions{.momentum = 0, .nesterov = true}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
}

}  // namespace
}  // namespace lockstep::optim
