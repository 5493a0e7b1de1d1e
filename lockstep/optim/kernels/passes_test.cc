#include "lockstep/optim/kernels/passes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "lockstep/base/testing/instruction_sets.h"

namespace lockstep::optim {
namespace {

// One element at a time in long double, from the rules' definitions.
struct One {
  long double p, g, s[3];
};

void reference(const SgdRule& r, One& e) {
  long double g = e.g * r.multiplier + e.p * r.weight_decay;
  if (r.momentum != 0) {
    e.s[0] = r.first ? g : e.s[0] * r.momentum + g * r.undamped;
    g = r.nesterov ? g + e.s[0] * r.momentum : e.s[0];
  }
  e.p = e.p * r.shrink - r.lr * g;
}

void reference(const AdagradRule& r, One& e) {
  const long double g = e.g * r.multiplier + e.p * r.weight_decay;
  e.s[0] += g * g;
  e.p -= r.lr * g / (std::sqrt(e.s[0]) + r.eps);
}

void reference(const AdamRule& r, One& e, bool amsgrad) {
  const long double g = e.g * r.multiplier + e.p * r.weight_decay;
  e.s[0] += r.new_share * (g - e.s[0]);
  e.s[1] = r.beta2 * e.s[1] + (1 - r.beta2) * g * g;
  e.s[2] = std::max(e.s[2], e.s[1]);
  const long double root = std::sqrt(amsgrad ? e.s[2] : e.s[1]) / r.root_correction;
  e.p = e.p * r.shrink - r.step_size * e.s[0] / (root + r.eps);
}

void reference(const RmspropRule& r, One& e) {
  const long double g = e.g * r.multiplier + e.p * r.weight_decay;
  e.s[0] = r.alpha * e.s[0] + (1 - r.alpha) * g * g;
  if (r.centered) e.s[1] += (1 - r.alpha) * (g - e.s[1]);
  long double step = g / (std::sqrt(e.s[0] - (r.centered ? e.s[1] * e.s[1] : 0)) + r.eps);
  if (r.momentum != 0) {
    long double& buffer = e.s[r.centered ? 2 : 1];
    step = buffer = r.momentum * buffer + step;
  }
  e.p -= r.lr * step;
}

void reference(const NadamRule& r, One& e) {
  const long double g = e.g * r.multiplier + e.p * r.weight_decay;
  e.s[0] += r.new_share * (g - e.s[0]);
  e.s[1] = r.beta2 * e.s[1] + (1 - r.beta2) * g * g;
  const long double root = std::sqrt(e.s[1] / r.square_correction) + r.eps;
  e.p = e.p * r.shrink - (r.gradient_step * g + r.average_step * e.s[0]) / root;
}

template <typename T>
struct Data {
  explicit Data(size_t size) : columns(5, std::vector<T>(size)) {
    std::mt19937 random(static_cast<unsigned>(size));
    std::normal_distribution<double> normal;
    for (auto& column : columns) {
      for (T& value : column) value = static_cast<T>(normal(random));
    }
    for (size_t k : {3, 4}) {  // second moments
      for (T& value : columns[k]) value = value * value;
    }
  }
  Elements<T> elements(size_t states) {
    Elements<T> e{
        .parameter = columns[0].data(), .gradient = columns[1].data(), .state = {}, .size = columns[0].size()};
    for (size_t k = 0; k < states; ++k) e.state[k] = columns[2 + k].data();
    return e;
  }
  One one(size_t i) const { return {columns[0][i], columns[1][i], {columns[2][i], columns[3][i], columns[4][i]}}; }
  std::vector<std::vector<T>> columns;
};

template <typename T, typename R, typename Reference>
void expect_same(const R& rule, size_t states, Reference advance) {
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{100}}) {
    Data<T> data(size);
    if constexpr (std::is_same_v<R, AdagradRule>) std::swap(data.columns[2], data.columns[3]);
    if constexpr (std::is_same_v<R, RmspropRule>) {
      data.columns[2] = data.columns[3];
      for (T& average : data.columns[3]) average *= T(0.1);  // of a variance above 0
      for (T& square : data.columns[2]) square += 1;
    }
    const Data<T> before = data;
    run_pass(rule, data.elements(states));
    for (size_t i = 0; i < size; ++i) {
      One expected = before.one(i);
      advance(expected);
      EXPECT_NEAR(static_cast<double>(expected.p), data.columns[0][i], tolerance) << i << " of " << size;
      for (size_t k = 0; k < states; ++k) {
        EXPECT_NEAR(static_cast<double>(expected.s[k]), data.columns[2 + k][i], tolerance) << "state " << k;
      }
    }
    EXPECT_EQ(data.columns[1], before.columns[1]);  // the gradient stays
    for (size_t k = states; k < 3; ++k) EXPECT_EQ(data.columns[2 + k], before.columns[2 + k]);
  }
}

template <typename T>
class Passes : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Passes, Types);

TYPED_TEST(Passes, Sgd) {
  SgdRule rule{.multiplier = 0.5,
               .lr = 0.1,
               .weight_decay = 0.01,
               .momentum = 0,
               .undamped = 0.75,
               .nesterov = false,
               .first = false};
  const auto advance = [&](One& e) { reference(rule, e); };
  expect_same<TypeParam>(rule, 0, advance);
  rule.momentum = 0.9;
  expect_same<TypeParam>(rule, 1, advance);
  rule.nesterov = true;
  expect_same<TypeParam>(rule, 1, advance);
  rule.first = true;
  rule.multiplier = -1;
  expect_same<TypeParam>(rule, 1, advance);
  rule.first = rule.nesterov = false;
  rule.weight_decay = 0;
  rule.shrink = 0.99;
  expect_same<TypeParam>(rule, 1, advance);
}

TYPED_TEST(Passes, Adagrad) {
  const AdagradRule rule{.multiplier = 2, .lr = 0.1, .weight_decay = 0.01, .eps = 1e-3};
  expect_same<TypeParam>(rule, 1, [&](One& e) { reference(rule, e); });
}

TYPED_TEST(Passes, Adam) {
  AdamRule rule{.multiplier = 2,
                .weight_decay = 0.01,
                .shrink = 0.875,
                .new_share = 0.1,
                .beta2 = 0.99,
                .step_size = 0.1,
                .root_correction = 0.5,
                .eps = 1e-3};
  for (const double share : {0.1, 0.7}) {
    rule.new_share = share;
    expect_same<TypeParam>(rule, 2, [&](One& e) { reference(rule, e, false); });
    expect_same<TypeParam>(rule, 3, [&](One& e) { reference(rule, e, true); });
  }
}

TYPED_TEST(Passes, Rmsprop) {
  RmspropRule rule{
      .multiplier = 2, .lr = 0.1, .weight_decay = 0.01, .alpha = 0.9, .eps = 1e-3, .momentum = 0, .centered = false};
  const auto advance = [&](One& e) { reference(rule, e); };
  expect_same<TypeParam>(rule, 1, advance);
  rule.momentum = 0.9;
  expect_same<TypeParam>(rule, 2, advance);
  rule.centered = true;
  expect_same<TypeParam>(rule, 3, advance);
  rule.momentum = 0;
  expect_same<TypeParam>(rule, 2, advance);
}

TYPED_TEST(Passes, Nadam) {
  const NadamRule rule{.multiplier = 2,
                       .weight_decay = 0.01,
                       .shrink = 0.875,
                       .new_share = 0.1,
                       .beta2 = 0.99,
                       .square_correction = 0.5,
                       .gradient_step = 0.1,
                       .average_step = 0.2,
                       .eps = 1e-3};
  expect_same<TypeParam>(rule, 2, [&](One& e) { reference(rule, e); });
}

TYPED_TEST(Passes, ClipAndAverage) {
  const SgdRule rule{
      .multiplier = 2, .lr = 0.1, .weight_decay = 0, .momentum = 0, .undamped = 1, .nesterov = false, .first = false};
  for (const double share : {0.125, 0.75, 1.0}) {
    Data<TypeParam> data(37);
    const Data<TypeParam> before = data;
    Elements<TypeParam> elements = data.elements(0);
    elements.average = data.columns[2].data();
    run_pass(rule, elements, {.clip = 0.5, .average_share = share});
    for (size_t i = 0; i < 37; ++i) {
      const double g = std::clamp(2.0 * before.columns[1][i], -0.5, 0.5);
      const double p = before.columns[0][i] - 0.1 * g, average = before.columns[2][i];
      EXPECT_NEAR(data.columns[0][i], p, 1e-6);
      EXPECT_NEAR(data.columns[2][i], average + share * (p - average), 1e-6);
    }
    Data<TypeParam> alone = before;
    alone.columns[0] = data.columns[0];
    Elements<TypeParam> rest = alone.elements(0);
    rest.average = alone.columns[2].data();
    rest.gradient = nullptr;
    run_average(share, rest);
    EXPECT_EQ(alone.columns[2], data.columns[2]) << "as in a step";
  }
}

// Numbers of all sizes, ties between two neighbours among them, and what lies beyond the types' ranges.
at::Tensor numbers(int64_t size) {
  at::manual_seed(size);
  at::Tensor x = at::randn({size}) * at::exp2(at::randint(-30, 30, {size}));
  const float special[] = {1 + 1.0F / 256,
                           1 + 3.0F / 256,
                           1 + 1.0F / 2048,
                           1 + 3.0F / 2048,
                           65519,
                           65520,
                           1e-8F,
                           -6e-8F,
                           3.4e38F,
                           0,
                           -0.0F,
                           1e-40F,
                           NAN,
                           INFINITY,
                           -INFINITY};
  for (int64_t i = 0; i < std::min<int64_t>(size, std::size(special)); ++i) x[size - 1 - i] = special[i];
  return x;
}

// A master's step of 0 rounds it into the copy; a step from 0 by -1 makes it the widened gradient.
template <typename T>
void expect_torchs_rounding(at::ScalarType type) {
  SgdRule rule{.multiplier = 1};
  for (const int64_t size : {0, 1, 5, 16, 33, 1000}) {
    const at::Tensor x = numbers(size), none = at::zeros({size}, type), rounded = at::empty({size}, type);
    const at::Tensor master = x.clone();
    Elements<float, T> elements{.parameter = master.mutable_data_ptr<float>(),
                                .gradient = none.const_data_ptr<T>(),
                                .state = {},
                                .size = static_cast<size_t>(size),
                                .rounded = rounded.mutable_data_ptr<T>()};
    rule.lr = 0;
    run_pass(rule, elements);
    EXPECT_TRUE(at::allclose(rounded, x.to(type), 0, 0, true)) << size;
    master.zero_();
    elements.gradient = rounded.const_data_ptr<T>();
    rule.lr = -1;
    run_pass(rule, elements);
    EXPECT_TRUE(at::allclose(master, rounded.to(at::kFloat), 0, 0, true)) << size;
  }
}

TEST(NarrowPasses, RoundAsTorch) {
  testing_support::with_each_instruction_set([] {
    expect_torchs_rounding<at::Half>(at::kHalf);
    expect_torchs_rounding<at::BFloat16>(at::kBFloat16);
  });
}

// An element's result must not depend on where it lies: the same numbers in vectors and in tails.
template <typename W, typename G>
void expect_same_bits_at_any_offset() {
  const AdamRule rule{.multiplier = 0.3,
                      .weight_decay = 0.01,
                      .shrink = 1,
                      .new_share = 0.1,
                      .beta2 = 0.999,
                      .step_size = 0.1,
                      .root_correction = 0.1,
                      .eps = 1e-8};
  constexpr size_t kSize = 67;
  struct Memory {
    Memory() {
      const Data<float> data(kSize);
      for (size_t k = 0; k < 3; ++k)
        columns[k].assign(data.columns[k == 0 ? 0 : k + 1].begin(), data.columns[k == 0 ? 0 : k + 1].end());
      gradient.assign(data.columns[1].begin(), data.columns[1].end());
    }
    Elements<W, G> from(size_t begin, size_t size) {
      return {.parameter = columns[0].data() + begin,
              .gradient = gradient.data() + begin,
              .state = {columns[1].data() + begin, columns[2].data() + begin, nullptr},
              .size = size,
              .average = average.data() + begin,
              .rounded = rounded.data() + begin};
    }
    bool operator==(const Memory&) const = default;
    std::vector<W> columns[3];
    std::vector<G> gradient, rounded = std::vector<G>(kSize);
    std::vector<Computed<W>> average = std::vector<Computed<W>>(kSize, 1);
  } whole, pieces;
  run_pass(rule, whole.from(0, kSize), {.average_share = 0.25});
  for (size_t begin = 0; begin < kSize; begin += 5) {
    run_pass(rule, pieces.from(begin, std::min<size_t>(5, kSize - begin)), {.average_share = 0.25});
  }
  EXPECT_TRUE(whole == pieces);
}

TEST(PassesOfAllTypes, GiveTheSameBitsAtAnyOffset) {
  testing_support::with_each_instruction_set([] {
    expect_same_bits_at_any_offset<float, float>();
    expect_same_bits_at_any_offset<double, double>();
    expect_same_bits_at_any_offset<at::Half, at::Half>();
    expect_same_bits_at_any_offset<at::BFloat16, at::BFloat16>();
    expect_same_bits_at_any_offset<float, at::Half>();
    expect_same_bits_at_any_offset<float, at::BFloat16>();
  });
}

}  // namespace
}  // namespace lockstep::optim
