#include "lockstep/optim/rules/lamb.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/optim/testing/rule_checks.h"

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

// With these options, and whether as on GPUs.
class LambFollows : public ::testing::TestWithParam<std::tuple<LambOptions, bool>> {};

TEST_P(LambFollows, TheFormulas) {
  const auto& [options, as_on_gpus] = GetParam();
  Tensors p = draw(1, 1);
  p.push_back(at::zeros({3}));  // without a norm: the rate alone
  Reference reference{options, {}, {}, {}};
  for (at::Tensor& each : p) {
    each.requires_grad_();
    reference.p.push_back(each.detach().to(at::kDouble));
    reference.m.push_back(at::zeros_like(reference.p.back()));
    reference.v.push_back(at::zeros_like(reference.p.back()));
  }
  Lamb optimizer(p, options);
  if (as_on_gpus) optimizer.step_as_on_gpus();
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

INSTANTIATE_TEST_SUITE_P(
    Options, LambFollows,
    ::testing::Combine(::testing::Values(LambOptions{.lr = 0.02}, LambOptions{.lr = 0.02, .max_grad_norm = 0},
                                         LambOptions{.lr = 0.02, .grad_averaging = false, .adam_w_mode = false},
                                         LambOptions{.lr = 0.02, .weight_decay = 0, .bias_correction = false},
                                         LambOptions{.lr = 0.02, .weight_decay = 0, .use_nvlamb = true}),
                       ::testing::Bool()));

TEST(Lamb, TakesAKnownNormForItsOwn) {
  const at::Tensor p = at::ones({64}).requires_grad_(), q = at::ones({64}).requires_grad_();
  Lamb asked({p}), told({q});
  for (const at::Tensor& each : {p, q}) each.mutable_grad() = at::full({64}, 0.5);
  asked.update({});
  told.update({.grad_norm = 4});
  EXPECT_TRUE(at::equal(p, q));
}

TEST(Lamb, DependsOnWholeParameters) { EXPECT_FALSE(Lamb({at::ones({3}).requires_grad_()}).elementwise()); }

TEST(Lamb, RefusesOptionsOutOfRange) {
  EXPECT_NO_THROW(LambOptions{}.check());
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const LambOptions& bad :
       {LambOptions{.lr = -1}, LambOptions{.betas = {1.0, 0.9}}, LambOptions{.max_grad_norm = kNan}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
}

// With eps 0 the tails of vectors must not add 0 / 0.
TEST(LambRule, FollowsItsDefinition) {
  const LambRule rule{.multiplier = -0.5,
                      .weight_decay = 0.25,
                      .decoupled_decay = 0.125,
                      .beta1 = 0.75,
                      .new_share = 1,
                      .beta2 = 0.5,
                      .correction = 0.5,
                      .root_correction = 0.25,
                      .eps = 0};
  for (const auto type : {at::kFloat, at::kDouble}) {
    const double tolerance = type == at::kFloat ? 3e-5 : 1e-12;
    for (const int64_t size : {1, 15, 16, 100}) {
      at::manual_seed(size);
      const auto draw = [&] { return at::randn({size}).to(type); };
      const at::Tensor p = draw(), gradient = draw(), m = draw(), v = draw().square(), average = draw();
      const auto exact = [](const at::Tensor& x) { return x.to(at::kDouble).clone(); };
      const at::Tensor old = exact(p), old_average = exact(average);
      const at::Tensor g = (exact(gradient) * -0.5).clamp(-0.4, 0.4) + 0.25 * old;
      const at::Tensor new_m = 0.75 * exact(m) + g, new_v = 0.5 * exact(v) + 0.5 * g * g;
      const at::Tensor update = new_m / 0.5 / (new_v.sqrt() / 0.25) + 0.125 * old;
      const at::Tensor stepped = old - 0.1 * update;

      const Operands operands{.parameter = p, .gradient = gradient, .state = {&m, &v}, .average = &average};
      const Extras extras{.clip = 0.4, .average_share = 0.25};
      const SquareSums sums = step_lamb_moments(rule, operands, extras);
      EXPECT_TRUE(at::equal(exact(p), old) && at::equal(exact(average), old_average)) << "the weights wait";
      step_lamb(rule, 0.1, operands, extras);
      const auto near = [&](const at::Tensor& x, const at::Tensor& expected) {
        return at::allclose(exact(x), expected, tolerance, tolerance);
      };
      EXPECT_TRUE(near(m, new_m) && near(v, new_v)) << type << size;
      EXPECT_TRUE(near(p, stepped) && near(average, old_average + 0.25 * (stepped - old_average))) << type << size;
      EXPECT_NEAR(sums.weight / old.square().sum().item<double>(), 1, tolerance);
      EXPECT_NEAR(sums.other / update.square().sum().item<double>(), 1, tolerance);
    }
  }
}

constexpr LambRule kRule{.multiplier = 0.5,
                         .weight_decay = 0,
                         .decoupled_decay = 0.125,
                         .beta1 = 0.75,
                         .new_share = 0.25,
                         .beta2 = 0.5,
                         .correction = 0.5,
                         .root_correction = 0.25,
                         .eps = 1e-6};

struct LambTensors {
  at::Tensor parameter, gradient, average, square;
  explicit LambTensors(int64_t size, at::ScalarType type = at::kFloat) {
    at::manual_seed(3);
    const auto draw = [&] { return at::randn({size}).to(type); };
    parameter = draw();
    gradient = draw();
    average = draw();
    square = draw().abs();
  }
  Operands operands() const { return {parameter, gradient, {&average, &square}}; }
};

TEST(LambRule, GivesTheSameBitsWithAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    std::vector<SquareSums> sums;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      sums.push_back(step_lamb_moments(kRule, LambTensors(200003, type).operands()));
    }
    for (size_t i : {1, 2}) {
      EXPECT_EQ(sums[i].weight, sums[0].weight);
      EXPECT_EQ(sums[i].other, sums[0].other);
    }
  }
  at::set_num_threads(before);
}

// As fp32 weights whose gradient is fp32, to the last bit.
TEST(LambRule, TakesAMastersNarrowGradient) {
  const LambTensors narrow(20003), wide(20003);
  const at::Tensor gradient = narrow.gradient.to(at::kBFloat16), widened = gradient.to(at::kFloat);
  const at::Tensor rounded = at::empty({20003}, at::kBFloat16), average = narrow.parameter.clone();
  const Operands mastered{narrow.parameter, gradient, {&narrow.average, &narrow.square}, &average, &rounded};
  const Operands plain{wide.parameter, widened, {&wide.average, &wide.square}};
  const SquareSums a = step_lamb_moments(kRule, mastered), b = step_lamb_moments(kRule, plain);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.other, b.other);
  step_lamb(kRule, 0.1, mastered, {.average_share = 1});
  step_lamb(kRule, 0.1, plain);
  EXPECT_TRUE(at::equal(narrow.parameter, wide.parameter));
  EXPECT_TRUE(at::equal(average, wide.parameter));
  EXPECT_TRUE(at::equal(rounded, wide.parameter.to(at::kBFloat16)));
}

TEST(LambRule, IsTheSameOnDevices) {
  const LambRule rule{.multiplier = 0.5,
                      .weight_decay = 0.01,
                      .decoupled_decay = 0.02,
                      .beta1 = 0.9,
                      .new_share = 0.1,
                      .beta2 = 0.99,
                      .correction = 0.5,
                      .root_correction = 0.7,
                      .eps = 1e-2};
  for (const auto type : {at::kFloat, at::kDouble}) {
    const testing::StepTensors here(type), there(type);
    const Extras extras{.clip = 0.3, .average_share = 0.25};
    for (const bool scaled : {true, false}) {
      const SquareSums sums = step_lamb_moments(rule, here.operands(2), extras);
      step_lamb(rule, scaled ? 0.1 * std::sqrt(sums.weight / sums.other) : 0.1, here.operands(2), extras);
      step_on_device(LambStep{rule, 0.1, scaled}, there.operands(2), extras);
      testing::expect_close(here, there, 1e-5);
    }
  }
}

}  // namespace
}  // namespace lockstep::optim
