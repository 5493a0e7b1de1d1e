#include "lockstep/optim/kernels/layer_passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace lockstep::optim {
namespace {

template <typename T>
struct Data {
  explicit Data(size_t size) : columns(5, std::vector<T>(size)) {
    std::mt19937 random(static_cast<unsigned>(size));
    std::normal_distribution<double> normal;
    for (auto& column : columns) {
      for (T& value : column) value = static_cast<T>(normal(random));
    }
    for (T& value : columns[3]) value = value * value;
  }
  Elements<T> elements() {
    return {.parameter = columns[0].data(),
            .gradient = columns[1].data(),
            .state = {columns[2].data(), columns[3].data(), nullptr},
            .size = columns[0].size(),
            .average = columns[4].data()};
  }
  std::vector<std::vector<T>> columns;
};

template <typename T>
class LayerPasses : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(LayerPasses, Types);

const LambRule kRule{.multiplier = -0.5,
                     .weight_decay = 0.25,
                     .decoupled_decay = 0.125,
                     .beta1 = 0.75,
                     .new_share = 1,
                     .beta2 = 0.5,
                     .correction = 0.5,
                     .root_correction = 0.25,
                     .eps = 0};

TYPED_TEST(LayerPasses, SquareSums) {
  for (const size_t size : {0, 1, 15, 64, 1000}) {
    Data<TypeParam> data(size);
    long double weights = 0, gradients = 0;
    for (size_t i = 0; i < size; ++i) {
      const long double p = data.columns[0][i], g = std::clamp(0.5L * data.columns[1][i], -0.25L, 0.25L);
      weights += p * p;
      gradients += g * g;
    }
    const SquareSums sums = run_square_sums(0.5, 0.25, data.elements());
    EXPECT_NEAR(sums.weight, static_cast<double>(weights), 1e-12 * size);
    EXPECT_NEAR(sums.other, static_cast<double>(gradients), 1e-12 * size);
    EXPECT_EQ(run_gradient_square_sum(0.5, 0.25, data.elements()), sums.other);
  }
}

// One element at a time in long double; with eps 0 the tails of vectors must not add 0 / 0.
TYPED_TEST(LayerPasses, Lamb) {
  const double tolerance = sizeof(TypeParam) == 4 ? 3e-5 : 1e-12;
  for (const size_t size : {1, 15, 16, 100}) {
    Data<TypeParam> data(size);
    const Data<TypeParam> before = data;
    const SquareSums sums = run_lamb_moments(kRule, 0.4, data.elements());
    EXPECT_EQ(data.columns[0], before.columns[0]) << "the weights wait";
    EXPECT_EQ(data.columns[4], before.columns[4]);
    run_lamb_step(kRule, 0.1, 0.25, data.elements());
    long double weights = 0, updates = 0;
    for (size_t i = 0; i < size; ++i) {
      const long double p = before.columns[0][i];
      const long double g = std::clamp(-0.5L * before.columns[1][i], -0.4L, 0.4L) + 0.25L * p;
      const long double m = 0.75L * before.columns[2][i] + g, v = 0.5L * before.columns[3][i] + 0.5L * g * g;
      const long double update = m / 0.5L / (std::sqrt(v) / 0.25L) + 0.125L * p;
      const long double moved = p - 0.1L * update, average = before.columns[4][i];
      weights += p * p;
      updates += update * update;
      EXPECT_NEAR(data.columns[2][i], static_cast<double>(m), tolerance);
      EXPECT_NEAR(data.columns[3][i], static_cast<double>(v), tolerance);
      EXPECT_NEAR(data.columns[0][i], static_cast<double>(moved), tolerance);
      EXPECT_NEAR(data.columns[4][i], static_cast<double>(average + 0.25L * (moved - average)), tolerance);
    }
    EXPECT_NEAR(sums.weight / static_cast<double>(weights), 1, tolerance);
    EXPECT_NEAR(sums.other / static_cast<double>(updates), 1, tolerance);
  }
}

}  // namespace
}  // namespace lockstep::optim
