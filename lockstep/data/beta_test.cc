#include "lockstep/data/beta.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace lockstep::data {
namespace {

std::vector<double> draws(double alpha, int count) {
  std::vector<double> all;
  for (int i = 0; i < count; ++i) {
    RandomStream random(5, Purpose::kMix, 0, static_cast<uint64_t>(i));
    all.push_back(beta_variate(alpha, random));
  }
  return all;
}

// Beta(α, α)'s density, integrated from 0 to 1 by the substitution x = sin², after which nothing is infinite.
double share_below(double alpha, double limit) {
  constexpr int kParts = 20'000;
  const auto weight = [&](double angle) { return std::pow(std::sin(angle) * std::cos(angle), 2 * alpha - 1); };
  double below = 0, all = 0;
  for (int part = 0; part < kParts; ++part) {
    const double angle = (part + 0.5) / kParts * std::acos(-1.0) / 2;
    const double mass = weight(angle);
    all += mass;
    if (std::sin(angle) * std::sin(angle) < limit) below += mass;
  }
  return below / all;
}

class Beta : public ::testing::TestWithParam<double> {};

TEST_P(Beta, IsDistributedAsItsDensitySays) {
  constexpr int kDraws = 20'000;
  const double alpha = GetParam();
  const auto all = draws(alpha, kDraws);
  for (const double limit : {0.05, 0.2, 0.5, 0.8, 0.95}) {
    const double share =
        static_cast<double>(std::count_if(all.begin(), all.end(), [&](double x) { return x < limit; })) / kDraws;
    EXPECT_NEAR(share, share_below(alpha, limit), 0.015) << "below " << limit;  // four deviations
  }
  double mean = 0, variance = 0;
  for (const double x : all) mean += x / kDraws;
  for (const double x : all) variance += (x - mean) * (x - mean) / kDraws;
  EXPECT_NEAR(mean, 0.5, 0.015);
  EXPECT_NEAR(variance, 1 / (4 * (2 * alpha + 1)), 0.006);
}
INSTANTIATE_TEST_SUITE_P(Alphas, Beta, ::testing::Values(0.2, 0.6, 1.0, 2.0, 8.0));

TEST(BetaVariate, StaysBetweenZeroAndOneForEveryAlpha) {
  for (const double alpha : {kLeastAlpha, 1e-6, 1e-3, 0.01, 1e3, 1e9, std::numeric_limits<double>::max()}) {
    for (const double x : draws(alpha, 500)) {
      ASSERT_GE(x, 0) << alpha;
      ASSERT_LE(x, 1) << alpha;
    }
  }
}

TEST(BetaVariate, IsAFunctionOfItsStreamAlone) {
  EXPECT_EQ(draws(0.2, 100), draws(0.2, 100));
  EXPECT_NE(draws(0.2, 100), draws(0.3, 100));
}

// Recorded once. Another compiler, CPU or C library gives the same bits or the run of another machine can't be
// repeated.
TEST(BetaVariate, HasTheRecordedBits) {
  std::vector<uint64_t> bits;
  for (const double alpha : {0.2, 1.0, 4.0}) bits.push_back(std::bit_cast<uint64_t>(draws(alpha, 8).back()));
  EXPECT_EQ(bits, (std::vector<uint64_t>{4500346350161643106, 4603667837996505819, 4605566028542548141}));
}

}  // namespace
}  // namespace lockstep::data
