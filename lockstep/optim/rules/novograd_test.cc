#include "lockstep/optim/rules/novograd.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::optim {
namespace {

using testing::HasSubstr;
using Numbers = std::vector<double>;

// The paper's algorithm for one parameter, element by element in fp64; v is the average of ‖g‖², or of max |g|.
struct Reference {
  NovoGradOptions o;
  Numbers p, m;
  double v = 0;
  int count = 0;

  double measured(const Numbers& g) const {
    double sum = 0, largest = 0;
    for (const double each : g) {
      sum += each * each;
      largest = std::max(largest, std::abs(each));
    }
    return o.norm_type == 2 ? sum : largest;
  }
  void step(const Numbers& g) {
    const auto [beta1, beta2] = o.betas;
    const double now = measured(g);
    v = ++count == 1 && !o.init_zero ? now : beta2 * v + (1 - beta2) * now;
    const double first = o.bias_correction ? 1 - std::pow(beta1, count) : 1;
    const double second = o.bias_correction ? std::sqrt(1 - std::pow(beta2, count)) : 1;
    const double norm = (o.norm_type == 2 ? std::sqrt(v) : v) / second + o.eps;
    const double share = o.grad_averaging ? 1 - beta1 : 1;
    for (size_t i = 0; i < p.size(); ++i) {
      if (o.reg_inside_moment) {
        m[i] = beta1 * m[i] + share * (g[i] / norm + o.weight_decay * p[i]);
        p[i] -= o.lr * m[i] / first;
      } else {
        m[i] = beta1 * m[i] + share * g[i];
        p[i] -= o.lr * (m[i] / first / norm + o.weight_decay * p[i]);
      }
    }
  }
};

Numbers numbers_of(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.detach().to(at::kDouble).contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

// With these options, and whether as on GPUs.
class NovoGradFollows : public testing::TestWithParam<std::tuple<NovoGradOptions, bool>> {};

TEST_P(NovoGradFollows, ThePaper) {
  const auto& [options, as_on_gpus] = GetParam();
  at::manual_seed(1);
  const std::vector<at::Tensor> p = {at::randn({30, 40}).requires_grad_(), at::randn({7}).requires_grad_()};
  std::vector<Reference> references;
  for (const at::Tensor& each : p) references.push_back({options, numbers_of(each), Numbers(each.numel())});
  NovoGrad optimizer(p, options);
  if (as_on_gpus) optimizer.step_as_on_gpus();
  for (int step = 0; step < 8; ++step) {
    for (size_t i = 0; i < p.size(); ++i) {
      const at::Tensor gradient = at::randn_like(p[i]).detach() * std::pow(0.5, step);
      references[i].step(numbers_of(gradient));
      p[i].mutable_grad() = gradient * 1024;
    }
    optimizer.update({.grad_multiplier = 1.0 / 1024});
    for (size_t i = 0; i < p.size(); ++i) {
      const Numbers ours = numbers_of(p[i]);
      for (size_t k = 0; k < ours.size(); ++k) {
        ASSERT_NEAR(ours[k], references[i].p[k], 2e-5 * std::abs(references[i].p[k]) + 2e-6) << step << ' ' << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, NovoGradFollows,
    testing::Combine(
        testing::Values(NovoGradOptions{.lr = 0.02},
                        NovoGradOptions{.lr = 0.02, .betas = {0.95, 0.98}, .weight_decay = 0.1},
                        NovoGradOptions{.lr = 0.02, .weight_decay = 0.1, .reg_inside_moment = true},
                        NovoGradOptions{.lr = 0.02, .betas = {0.9, 0.5}, .bias_correction = false, .init_zero = true},
                        NovoGradOptions{.lr = 0.02, .betas = {0.9, 0.5}, .grad_averaging = false, .norm_type = 0},
                        NovoGradOptions{.lr = 0.02, .betas = {0.9, 0.5}, .norm_type = 0, .init_zero = true},
                        NovoGradOptions{.lr = 0.02, .betas = {0, 0.98}, .weight_decay = 0.1}),
        testing::Bool()));

// By hand: ‖g‖ = 5, so the step is lr · (m / 0.1 = g) / 5, the corrections of the norm's average included.
TEST(NovoGrad, FirstStepByHand) {
  const at::Tensor p = at::tensor({1.0f, 2.0f}).requires_grad_();
  NovoGrad optimizer({p}, {.lr = 0.5, .bias_correction = false});
  p.mutable_grad() = at::tensor({3.0f, 4.0f});
  optimizer.update({});
  EXPECT_TRUE(at::allclose(p.detach(), at::tensor({1 - 0.5f * 0.3f / 5, 2 - 0.5f * 0.4f / 5})));
  const auto state = optimizer.state_dict().parameters[0].tensors;
  ASSERT_EQ(state.size(), 3u);
  EXPECT_EQ(state[2].name, "exp_avg_norm");
  EXPECT_EQ(state[2].value.item<float>(), 5);
}

TEST(NovoGrad, ClipsBeforeTheNorm) {
  for (const int64_t norm_type : {0, 2}) {
    const at::Tensor p = at::zeros({2}).requires_grad_(), q = at::zeros({2}).requires_grad_();
    const NovoGradOptions options{.reg_inside_moment = true, .norm_type = norm_type};
    NovoGrad clipped({p}, options), small({q}, options);
    p.mutable_grad() = at::tensor({9.0f, 0.5f});
    q.mutable_grad() = at::tensor({1.0f, 0.5f});
    clipped.update({.clip_value = 1});
    small.update({});
    EXPECT_TRUE(at::allclose(p, q)) << norm_type;
  }
}

TEST(NovoGrad, DependsOnWholeParameters) { EXPECT_FALSE(NovoGrad({at::ones({3}).requires_grad_()}).elementwise()); }

TEST(NovoGrad, RefusesOtherNorms) {
  EXPECT_THAT(testing_support::refusal([] { NovoGrad({at::ones({3}).requires_grad_()}, {.norm_type = 1}); }),
              HasSubstr("norm_type is 1"));
}

}  // namespace
}  // namespace lockstep::optim
