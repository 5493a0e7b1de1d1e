#include "lockstep/nn/norm_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace lockstep::nn {
namespace {

constexpr size_t kRows = 7;

// A matrix of values that bf16 holds exactly, as fp32 and as bf16.
struct Values {
  explicit Values(size_t count, unsigned seed) : wide(count), brain(count) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 3);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(normal(random)) & 0xffff0000;
      wide[i] = std::bit_cast<float>(bits);
      brain[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
  const void* as(Element e) const {
    return e == Element::kFloat ? static_cast<const void*>(wide.data()) : brain.data();
  }
  std::vector<float> wide;
  std::vector<uint16_t> brain;
};

class Output {
 public:
  Output(Element element, size_t count) : element_(element), wide_(count), brain_(count) {}
  void* data() { return element_ == Element::kFloat ? static_cast<void*>(wide_.data()) : brain_.data(); }
  float at(size_t i) const {
    return element_ == Element::kFloat ? wide_[i] : std::bit_cast<float>(static_cast<uint32_t>(brain_[i]) << 16);
  }
  double tolerance(float value) const {
    return (element_ == Element::kFloat ? 1e-6 : 0.004) * std::max(1.0F, std::abs(value));
  }

 private:
  Element element_;
  std::vector<float> wide_;
  std::vector<uint16_t> brain_;
};

float activated(Activation a, float z) {
  if (a == Activation::kNone) return z;
  return std::min(std::max(z, 0.0F), a == Activation::kRelu6 ? 6.0F : std::numeric_limits<float>::infinity());
}

float derivative(Activation a, float z) {
  if (a == Activation::kNone) return 1;
  return z > 0 && (a == Activation::kRelu || z < 6) ? 1 : 0;
}

struct Problem {
  explicit Problem(Element element, size_t columns)
      : extent{element, kRows, columns},
        x(kRows * columns, 1),
        other(kRows * columns, 2),
        dy(kRows * columns, 3),
        mean(columns, 4),
        scale(columns, 5),
        bias(columns, 6) {}
  Affine affine() const { return {mean.wide.data(), scale.wide.data(), bias.wide.data()}; }
  float centred(size_t i) const { return x.wide[i] - mean.wide[i % extent.columns]; }
  float z(size_t i) const {
    const size_t c = i % extent.columns;
    return std::fma(centred(i), scale.wide[c], bias.wide[c]);
  }
  Extent extent;
  Values x, other, dy, mean, scale, bias;
};

void expect_forward(const Problem& p, Activation activation, bool residual) {
  Output y(p.extent.element, kRows * p.extent.columns);
  normalise(p.extent, p.x.as(p.extent.element), residual ? p.other.as(p.extent.element) : nullptr, p.affine(),
            activation, y.data());
  for (size_t i = 0; i < p.x.wide.size(); ++i) {
    const float expected = activated(activation, p.z(i) + (residual ? p.other.wide[i] : 0));
    ASSERT_NEAR(y.at(i), expected, 10 * y.tolerance(expected)) << i;
  }
}

void expect_backward(const Problem& p, Activation activation, bool by_output) {
  const Element e = p.extent.element;
  const size_t columns = p.extent.columns;
  const Gradient from{p.dy.as(e), p.x.as(e), by_output ? p.other.as(e) : nullptr, p.affine(), activation};
  const auto g = [&](size_t i) { return p.dy.wide[i] * derivative(activation, by_output ? p.other.wide[i] : p.z(i)); };
  Output masked(e, kRows * columns), dx(e, kRows * columns);
  std::vector<double> first(columns, 1), second(columns, 2);
  add_gradient_sums(p.extent, from, masked.data(), {first.data(), second.data()});
  input_gradient(p.extent, from, p.bias.wide.data(), p.mean.wide.data(), dx.data());
  for (size_t i = 0; i < kRows * columns; ++i) {
    const size_t c = i % columns;
    ASSERT_EQ(masked.at(i), g(i)) << i;
    const float expected = g(i) * p.scale.wide[c] + p.centred(i) * p.bias.wide[c] + p.mean.wide[c];
    ASSERT_NEAR(dx.at(i), expected, 10 * dx.tolerance(expected)) << i;
  }
  for (size_t c = 0; c < columns; ++c) {
    double sum = 1, product_sum = 2;
    for (size_t i = c; i < kRows * columns; i += columns) {
      sum += g(i);
      product_sum += double{g(i)} * p.centred(i);
    }
    EXPECT_NEAR(first[c], sum, 1e-4);
    EXPECT_NEAR(second[c], product_sum, 1e-3);
  }
}

TEST(NormKernels, ComputeWhatTheirHeaderSays) {
  for (const Element element : {Element::kFloat, Element::kBrain}) {
    for (const size_t columns : {1, 7, 16, 24, 64, 131}) {
      const Problem p(element, columns);
      for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
        for (const bool other : {false, true}) {
          expect_forward(p, activation, other);
          expect_backward(p, activation, other);
        }
      }
    }
  }
}

// More rows than are added up in fp32 at a time.
TEST(NormKernels, MomentsAreSums) {
  constexpr size_t kMany = 5000, kColumns = 24;
  const Values x(kMany * kColumns, 1), shift(kColumns, 2);
  for (const Element element : {Element::kFloat, Element::kBrain}) {
    std::vector<double> first(kColumns), second(kColumns);
    add_moments({element, kMany, kColumns}, x.as(element), shift.wide.data(), {first.data(), second.data()});
    for (size_t c = 0; c < kColumns; ++c) {
      double sum = 0, squares = 0;
      for (size_t i = c; i < x.wide.size(); i += kColumns) {
        const double centred = double{x.wide[i]} - shift.wide[c];
        sum += centred;
        squares += centred * centred;
      }
      EXPECT_NEAR(first[c] / sum, 1, 1e-5);
      EXPECT_NEAR(second[c] / squares, 1, 1e-6);
    }
  }
}

TEST(NormKernels, NaNStays) {
  const float mean = 0, scale = 1, bias = 0;
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
    const float x = std::numeric_limits<float>::quiet_NaN();
    const uint16_t brain = 0x7fff;
    float y = 0;
    uint16_t brain_y = 0;
    normalise({Element::kFloat, 1, 1}, &x, nullptr, {&mean, &scale, &bias}, activation, &y);
    normalise({Element::kBrain, 1, 1}, &brain, nullptr, {&mean, &scale, &bias}, activation, &brain_y);
    EXPECT_TRUE(std::isnan(y));
    EXPECT_GT(brain_y & 0x7fff, 0x7f80);
  }
}

}  // namespace
}  // namespace lockstep::nn
