#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "lockstep/base/testing/instruction_sets.h"
#include "lockstep/optim/kernels/step.h"
#include "lockstep/optim/rules/adam.h"
#include "lockstep/optim/rules/sgd.h"
namespace lockstep::optim {
namespace {

TEST(VectorStep, ClipsAndAverages) {
  const SgdRule rule{.multiplier = 2, .lr = 0.1};
  for (const double share : {0.125, 0.75, 1.0}) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      at::manual_seed(37);
      const at::Tensor p = at::randn({37}, type), g = at::randn({37}, type), average = at::randn({37}, type);
      const at::Tensor stepped = p - 0.1 * (2 * g).clamp(-0.5, 0.5), moved = average.lerp(stepped, share);
      step_parameter(rule, {p, g, {}, &average}, {.clip = 0.5, .average_share = share});
      EXPECT_TRUE(at::allclose(p, stepped, 0, 1e-6));
      EXPECT_TRUE(at::allclose(average, moved, 0, 1e-6));
    }
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
    step_elements(rule, elements);
    EXPECT_TRUE(at::allclose(rounded, x.to(type), 0, 0, true)) << size;
    master.zero_();
    elements.gradient = rounded.const_data_ptr<T>();
    rule.lr = -1;
    step_elements(rule, elements);
    EXPECT_TRUE(at::allclose(master, rounded.to(at::kFloat), 0, 0, true)) << size;
  }
}

TEST(VectorStep, RoundsAsTorch) {
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
      std::mt19937 random(kSize);
      std::normal_distribution<float> normal;
      for (size_t i = 0; i < kSize; ++i) {
        weight.push_back(normal(random));
        gradient.push_back(normal(random));
        mean.push_back(normal(random));
        square.push_back(std::abs(normal(random)));
      }
    }
    Elements<W, G> from(size_t begin, size_t size) {
      return {.parameter = weight.data() + begin,
              .gradient = gradient.data() + begin,
              .state = {mean.data() + begin, square.data() + begin, nullptr},
              .size = size,
              .average = average.data() + begin,
              .rounded = rounded.data() + begin};
    }
    bool operator==(const Memory&) const = default;
    std::vector<W> weight, mean, square;
    std::vector<G> gradient, rounded = std::vector<G>(kSize);
    std::vector<Computed<W>> average = std::vector<Computed<W>>(kSize, 1);
  } whole, parts;
  step_elements(rule, whole.from(0, kSize), {.average_share = 0.25});
  for (size_t begin = 0; begin < kSize; begin += 5) {
    step_elements(rule, parts.from(begin, std::min<size_t>(5, kSize - begin)), {.average_share = 0.25});
  }
  EXPECT_TRUE(whole == parts);
}

TEST(VectorStep, GivesTheSameBitsAtAnyOffset) {
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
