#include "lockstep/track/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace lockstep::track {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Histogram of(const std::vector<double>& values) {
  HistogramCounter counter;
  for (const double value : values) counter.add(value);
  return counter.histogram();
}

TEST(Histogram, CountsEachValueInTheBucketThatHoldsIt) {
  const std::vector<double> values = {-1e30, -2.5, -1, -1e-12, -1e-20, 0, 1e-20, 1e-12, 0.3, 0.3, 7, 1e25};
  const Histogram histogram = of(values);
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0), 12);
  EXPECT_EQ(histogram.count, 12);
  double low = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < histogram.limits.size(); low = histogram.limits[i++]) {
    EXPECT_GT(histogram.limits[i], low);
    double inside = 0;
    for (const double value : values) {
      // The limit itself lies above; mirrored below zero.
      inside += value < 0 ? value > low && value <= histogram.limits[i] : value >= low && value < histogram.limits[i];
    }
    if (histogram.limits[i] != 0) EXPECT_EQ(histogram.counts[i], inside) << "up to " << histogram.limits[i];
  }
}

TEST(Histogram, KnowsItsValues) {
  const Histogram histogram = of({1, -2, 0.5});
  EXPECT_EQ(histogram.min, -2);
  EXPECT_EQ(histogram.max, 1);
  EXPECT_EQ(histogram.sum, -0.5);
  EXPECT_EQ(histogram.sum_of_squares, 5.25);
}

TEST(Histogram, BucketsGrowByATenth) {
  const Histogram histogram = of({1.0, 1.2});
  ASSERT_GE(histogram.limits.size(), 2u);
  EXPECT_NEAR(histogram.limits[1] / histogram.limits[0], 1.1, 1e-9);
}

TEST(Histogram, EmptyBucketsBetweenTwoAreOne) {
  const Histogram histogram = of({1e-6, 1e6});
  EXPECT_THAT(histogram.counts, ElementsAre(1, 0, 1));
}

TEST(Histogram, MayBeEmptyOrZero) {
  EXPECT_THAT(of({}).counts, IsEmpty());
  EXPECT_THAT(of({0, 0}).counts, ElementsAre(2));
}

}  // namespace
}  // namespace lockstep::track
