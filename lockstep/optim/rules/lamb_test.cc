#include "lockstep/optim/rules/lamb.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::optim {
namespace {

using Tensors = std::vector<at::Tensor>;

// FusedLAMB's formulas, in fp64.
struct Reference {
  LambOptions o;
  Tensors p, m, v;
  int count = 0;

  void step(const Tensors& gradients) {
    ++count;
    double squares = 0;
    for (const at::Tensor& g : gradients) squares += g.square().sum().item<double>();
    const double norm = std::sqrt(squares);
    const double divisor = o.max_grad_norm > 0 && norm > o.max_grad_norm ? norm / o.max_grad_norm : 1;
    for (size_t i = 0; i < p.size(); ++i) step_one(i, gradients[i] / divisor);
  }
  void step_one(size_t i, at::Tensor g) {
    const auto [beta1, beta2] = o.betas;
    if (!o.adam_w_mode) g = g + o.weight_decay * p[i];
    m[i] = beta1 * m[i] + (o.grad_averaging ? 1 - beta1 : 1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    const double first = o.bias_correction ? 1 - std::pow(beta1, count) : 1;
    const double second = o.bias_correction ? 1 - std::pow(beta2, count) : 1;
    at::Tensor update = (m[i] / first) / ((v[i] / second).sqrt() + o.eps);
    if (o.adam_w_mode) update = update + o.weight_decay * p[i];
    const double weight = p[i].norm().item<double>(), step = update.norm().item<double>();
    const bool scaled = (o.weight_decay != 0 || o.use_nvlamb) && weight > 0 && step > 0;
    p[i] = p[i] - (scaled ? o.lr * weight / step : o.lr) * update;
  }
};

Tensors draw(int seed, double factor) {
  at::manual_seed(static_cast<uint64_t>(seed));
  return {at::randn({30, 40}) * factor, at::randn({7}) * factor};
}

class LambFollows : public testing::TestWithParam<LambOptions> {};

TEST_P(LambFollows, TheFormulas) {
  Tensors p = draw(1, 1);
  p.push_back(at::zeros({3}));  // without a norm: the rate alone
  Reference reference{GetParam(), {}, {}, {}};
  for (at::Tensor& each : p) {
    each.requires_grad_();
    reference.p.push_back(each.detach().to(at::kDouble));
    reference.m.push_back(at::zeros_like(reference.p.back()));
    reference.v.push_back(at::zeros_like(reference.p.back()));
  }
  Lamb optimizer(p, GetParam());
  for (int step = 0; step < 6; ++step) {
    Tensors gradients = draw(10 + step, step % 2 == 0 ? 1 : 1e-3);  // beyond the greatest norm, and within it
    gradients.push_back(at::ones({3}) * 0.01);
    for (size_t i = 0; i < p.size(); ++i) {
      p[i].mutable_grad() = gradients[i] * 1024;
      gradients[i] = gradients[i].to(at::kDouble);
    }
    optimizer.update({.grad_multiplier = 1.0 / 1024});
    reference.step(gradients);
    for (size_t i = 0; i < p.size(); ++i) {
      EXPECT_TRUE(at::allclose(p[i].detach().to(at::kDouble), reference.p[i], 2e-5, 2e-6)) << step << ' ' << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Options, LambFollows,
                         testing::Values(LambOptions{.lr = 0.02}, LambOptions{.lr = 0.02, .max_grad_norm = 0},
                                         LambOptions{.lr = 0.02, .grad_averaging = false, .adam_w_mode = false},
                                         LambOptions{.lr = 0.02, .weight_decay = 0, .bias_correction = false},
                                         LambOptions{.lr = 0.02, .weight_decay = 0, .use_nvlamb = true}));

TEST(Lamb, TakesAKnownNormForItsOwn) {
  const at::Tensor p = at::ones({64}).requires_grad_(), q = at::ones({64}).requires_grad_();
  Lamb asked({p}), told({q});
  for (const at::Tensor& each : {p, q}) each.mutable_grad() = at::full({64}, 0.5);
  asked.update({});
  told.update({.grad_norm = 4});
  EXPECT_TRUE(at::equal(p, q));
}

TEST(Lamb, DependsOnWholeParameters) { EXPECT_FALSE(Lamb({at::ones({3}).requires_grad_()}).elementwise()); }

}  // namespace
}  // namespace lockstep::optim
