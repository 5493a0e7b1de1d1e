// Checks of an optimizer's rule: its vector form against its definition, its tensor form against the vector form.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "lockstep/optim/kernels/step.h"

namespace lockstep::optim::testing {

// One element: weight, gradient and state.
struct One {
  long double p, g, s[3];
};

// Random elements of type T; the second and third state are not negative.
template <typename T>
struct Columns {
  explicit Columns(size_t size) : p(size), g(size), s(3, std::vector<T>(size)) {
    std::mt19937 random(static_cast<unsigned>(size));
    std::normal_distribution<double> normal;
    for (auto* column : {&p, &g, &s[0], &s[1], &s[2]}) {
      for (T& value : *column) value = static_cast<T>(normal(random));
    }
    for (size_t k : {1, 2}) {
      for (T& value : s[k]) value = value * value;
    }
  }
  Elements<T> elements(size_t states) {
    Elements<T> e{.parameter = p.data(), .gradient = g.data(), .state = {}, .size = p.size()};
    for (size_t k = 0; k < states; ++k) e.state[k] = s[k].data();
    return e;
  }
  One one(size_t i) const { return {p[i], g[i], {s[0][i], s[1][i], s[2][i]}}; }

  std::vector<T> p, g;
  std::vector<std::vector<T>> s;
};

template <typename T, typename Rule, typename Define, typename Prepare>
void expect_vector_form(const Rule& rule, size_t states, const Define& define, const Prepare& prepare) {
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{100}}) {
    Columns<T> data(size);
    prepare(data.s);
    const Columns<T> before = data;
    step_elements(rule, data.elements(states));
    for (size_t i = 0; i < size; ++i) {
      One expected = before.one(i);
      define(expected);
      EXPECT_NEAR(static_cast<double>(expected.p), data.p[i], tolerance) << i << " of " << size;
      for (size_t k = 0; k < states; ++k) {
        EXPECT_NEAR(static_cast<double>(expected.s[k]), data.s[k][i], tolerance) << "state " << k;
      }
    }
    EXPECT_EQ(data.g, before.g) << "the gradient stays";
    for (size_t k = states; k < 3; ++k) EXPECT_EQ(data.s[k], before.s[k]);
  }
}

// Steps elements with so many states in fp32 and fp64 and expects what define(One&) makes of one element in long
// double. prepare(columns of state) makes the state that the rule needs.
template <typename Rule, typename Define, typename Prepare>
void expect_definition(const Rule& rule, size_t states, const Define& define, const Prepare& prepare) {
  expect_vector_form<float>(rule, states, define, prepare);
  expect_vector_form<double>(rule, states, define, prepare);
}
template <typename Rule, typename Define>
void expect_definition(const Rule& rule, size_t states, const Define& define) {
  expect_definition(rule, states, define, [](auto&) {});
}

// 1,000 random elements as tensors of one type; the states are not negative.
struct StepTensors {
  at::Tensor parameter, gradient, average;
  std::vector<at::Tensor> state;

  explicit StepTensors(at::ScalarType type) {
    at::manual_seed(5);
    const auto draw = [&] { return at::randn({1000}).to(type); };
    parameter = draw();
    gradient = draw();
    for (int k = 0; k < 3; ++k) state.push_back(draw().abs());
    average = draw().to(type == at::kDouble ? at::kDouble : at::kFloat);
  }
  Operands operands(size_t states) const {
    Operands of{.parameter = parameter, .gradient = gradient, .state = {}, .average = &average};
    for (size_t k = 0; k < states; ++k) of.state[k] = &state[k];
    return of;
  }
};

inline void expect_close(const StepTensors& a, const StepTensors& b, double tolerance) {
  EXPECT_TRUE(at::allclose(a.parameter, b.parameter, tolerance, tolerance)) << a.parameter.scalar_type();
  EXPECT_TRUE(at::allclose(a.average, b.average, tolerance, tolerance)) << a.parameter.scalar_type();
  for (size_t k = 0; k < a.state.size(); ++k) {
    EXPECT_TRUE(at::allclose(a.state[k], b.state[k], tolerance, tolerance)) << "state " << k;
  }
}

// Expects the tensor form, which libtorch's operations compute on the CPU as well, to follow the vector form.
template <typename Rule>
void expect_device_follows(const Rule& rule, size_t states) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const Extras& extras : {Extras{.average_share = 0.1}, Extras{.clip = 0.3, .average_share = 1}}) {
      const StepTensors here(type), there(type);
      step_parameter(rule, here.operands(states), extras);
      step_on_device(rule, there.operands(states), extras);
      expect_close(here, there, type == at::kBFloat16 ? 1e-2 : 1e-5);
    }
  }
}

}  // namespace lockstep::optim::testing
