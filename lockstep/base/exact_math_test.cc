#include "lockstep/base/exact_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>

#include "lockstep/base/fnv.h"
#include "lockstep/base/philox.h"

namespace lockstep {
namespace {

constexpr int kValues = 1000000;

uint64_t hashed(uint64_t hash, double value) { return fnv1a(hash, std::bit_cast<uint64_t>(value)); }

// Values that are spread evenly over [low, high).
template <typename Visit>
void for_values(double low, double high, const Visit& visit) {
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  for (int i = 0; i < kValues; ++i) {
    const double upper = random.bits(), lower = random.bits();
    visit(low + (high - low) * (upper * 0x1p-32 + lower * 0x1p-64));
  }
}

// A hash of a million results of each function: the bits are the same on every machine.
TEST(ExactMath, HasTheRecordedBits) {
  uint64_t log = kFnvSeed, exp = kFnvSeed, sine = kFnvSeed;
  for_values(0x1p-20, 16, [&](double x) { log = hashed(log, exact_log(x)); });
  for_values(-20, 20, [&](double x) { exp = hashed(exp, exact_exp(x)); });
  for_values(-10, 10, [&](double x) {
    const SineCosine both = exact_sine_cosine(x);
    sine = hashed(hashed(sine, both.sine), both.cosine);
  });
  EXPECT_EQ(log, 2349390195512456702u);
  EXPECT_EQ(exp, 5053754068231026431u);
  EXPECT_EQ(sine, 10861387306505990990u);
}

TEST(ExactMath, LogIsNearTheTrueValue) {
  double worst = 0;
  const auto look = [&](double x) {
    const long double truth = std::log(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::abs(exact_log(x) - truth) / std::max(std::abs(truth), 1e-2l)));
  };
  for_values(0x1p-20, 16, look);
  for_values(0.9, 1.1, look);
  for (const double x : {1.0, 0.75, 4.0 / 3, 1e-300, 1e300, 0x1p-1070}) look(x);
  EXPECT_LT(worst, 1e-14);
  EXPECT_EQ(exact_log(1), 0);
}

TEST(ExactMath, ExpIsNearTheTrueValue) {
  double worst = 0;
  const auto look = [&](double x) {
    const long double truth = std::exp(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::abs(exact_exp(x) - truth) / truth));
  };
  for_values(-20, 20, look);
  for_values(-699, 699, look);
  EXPECT_LT(worst, 1e-14);
  EXPECT_EQ(exact_exp(0), 1);
}

TEST(ExactMath, SineAndCosineAreNearTheTrueValues) {
  double worst = 0;
  const auto look = [&](double x) {
    const SineCosine both = exact_sine_cosine(x);
    worst = std::max(worst, static_cast<double>(std::abs(both.sine - std::sin(static_cast<long double>(x)))));
    worst = std::max(worst, static_cast<double>(std::abs(both.cosine - std::cos(static_cast<long double>(x)))));
  };
  for_values(-10, 10, look);
  for_values(-1e5, 1e5, look);
  EXPECT_LT(worst, 1e-14);
  EXPECT_EQ(exact_sine_cosine(0).sine, 0);
  EXPECT_EQ(exact_sine_cosine(0).cosine, 1);
  EXPECT_NEAR(exact_sine_cosine(std::numbers::pi / 2).sine, 1, 1e-15);
}

}  // namespace
}  // namespace lockstep
