#include "lockstep/schedule/plateau.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace lockstep::schedule {
namespace {

constexpr Rates kRates{.base = 1, .least = 0};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The rates after each metric.
std::vector<double> rates(const PlateauLr& options, const std::vector<double>& metrics, const Rates& range = kRates) {
  std::vector<double> out;
  PlateauState state;
  for (const double metric : metrics) {
    state = next(options, range, state, metric);
    out.push_back(*state.lr);
  }
  return out;
}

using Rows = std::vector<double>;

TEST(Plateau, FallsAfterMoreThanPatience) {
  const PlateauLr options{.factor = 0.5, .patience = 1};
  EXPECT_EQ(rates(options, {5, 5, 5}), Rows({1, 1, 0.5}));
  EXPECT_EQ(rates(options, {5, 5, 4, 4, 4}), Rows({1, 1, 1, 1, 0.5})) << "a better one begins the count anew";
  EXPECT_EQ(rates(options, {5, 6, 6, 6, 6}), Rows({1, 1, 0.5, 0.5, 0.25})) << "and so does a fall";
  EXPECT_EQ(rates({.factor = 0.5, .patience = 0}, {5, 5, 5}), Rows({1, 0.5, 0.25}));
}

TEST(Plateau, BetterIsLowerOrHigherByTheThreshold) {
  const auto falls = [](const PlateauLr& options, double second) { return rates(options, {10, second})[1] < 1; };
  PlateauLr options{.factor = 0.5, .patience = 0, .threshold = 0.1};
  EXPECT_TRUE(falls(options, 9));
  EXPECT_FALSE(falls(options, 8.9));
  options.mode = PlateauMode::kMax;
  EXPECT_TRUE(falls(options, 11));
  EXPECT_FALSE(falls(options, 11.1));
  options.threshold_mode = PlateauThreshold::kAbs;
  EXPECT_TRUE(falls(options, 10.1));
  EXPECT_FALSE(falls(options, 10.2));
  options.mode = PlateauMode::kMin;
  EXPECT_TRUE(falls(options, 9.9));
  EXPECT_FALSE(falls(options, 9.8));
}

TEST(Plateau, WhileItCoolsDownNothingCounts) {
  EXPECT_EQ(rates({.factor = 0.5, .patience = 0, .cooldown = 2}, {5, 5, 5, 5, 5, 5}),
            Rows({1, 0.5, 0.5, 0.5, 0.25, 0.25}));
}

TEST(Plateau, StopsAtTheLeastRateAndAtSmallFalls) {
  EXPECT_EQ(rates({.factor = 0.5, .patience = 0}, {5, 5, 5, 5}, {.base = 1, .least = 0.3}), Rows({1, 0.5, 0.3, 0.3}));
  EXPECT_EQ(rates({.factor = 0.5, .patience = 0, .eps = 0.3}, {5, 5, 5, 5}), Rows({1, 0.5, 0.5, 0.5}));
}

TEST(Plateau, AMetricThatIsNoNumberIsNoBetter) {
  const PlateauLr options{.factor = 0.5, .patience = 0};
  EXPECT_EQ(rates(options, {kNan, 5, kNan, kInfinity}), Rows({0.5, 0.5, 0.25, 0.125}));
}

}  // namespace
}  // namespace lockstep::schedule
