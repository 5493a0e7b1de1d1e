#include "lockstep/checkpoint/contents/statistics.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::checkpoint {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

void expect_numbers(const Statistics& found, double min, double max, double mean, double deviation) {
  EXPECT_EQ(static_cast<double>(found.min), min);
  EXPECT_EQ(static_cast<double>(found.max), max);
  EXPECT_DOUBLE_EQ(found.mean, mean);
  EXPECT_DOUBLE_EQ(found.deviation, deviation);
}

// 1, 2, 3, 4 can be told in every type.
TEST(Statistics, OfEveryTypeThatFilesHold) {
  const double deviation = std::sqrt(5.0 / 3);
  for (const auto dtype :
       {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kChar, at::kByte, at::kShort, at::kInt, at::kLong,
        at::kComplexFloat, at::kComplexDouble, at::kUInt16, at::kUInt32, at::kUInt64, at::kFloat8_e4m3fn,
        at::kFloat8_e5m2, at::kFloat8_e4m3fnuz, at::kFloat8_e5m2fnuz}) {
    SCOPED_TRACE(c10::toString(dtype));
    const Statistics found = statistics_of(at::arange(1, 5).to(dtype));
    EXPECT_EQ(found.finite, 4);
    expect_numbers(found, 1, 4, 2.5, deviation);
  }
}

TEST(Statistics, OfBooleansCountTheTrueOnes) {
  const Statistics found = statistics_of(at::tensor({1, 0, 1, 1}).to(at::kBool));
  expect_numbers(found, 0, 1, 0.75, 0.5);
}

TEST(Statistics, LeaveOutWhatIsNotFinite) {
  for (const auto dtype : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kFloat8_e5m2}) {
    SCOPED_TRACE(c10::toString(dtype));
    const Statistics found = statistics_of(at::tensor({kNan, 1.0, -kInf, 3.0, kInf, kNan}).to(dtype));
    EXPECT_EQ(found.finite, 2);
    EXPECT_EQ(found.nan, 2);
    EXPECT_EQ(found.inf, 2);
    expect_numbers(found, 1, 3, 2, std::sqrt(2));
  }
}

TEST(Statistics, OfComplexNumbersAreTheMagnitudes) {
  const at::Tensor parts = at::tensor({3.0, 4.0, 0.0, -1.0, kNan, kInf, kInf, 0.0}).reshape({4, 2});
  const Statistics found = statistics_of(at::view_as_complex(parts));
  EXPECT_EQ(found.nan, 1);
  EXPECT_EQ(found.inf, 1);
  expect_numbers(found, 1, 5, 3, std::sqrt(8));
}

TEST(Statistics, OfWholeNumbersAreExact) {
  constexpr int64_t kLarge = std::numeric_limits<int64_t>::max() - 1, kLeast = std::numeric_limits<int64_t>::min();
  const Statistics found = statistics_of(at::tensor({kLarge, kLeast}, at::kLong));
  EXPECT_EQ(static_cast<int64_t>(found.max), kLarge);
  EXPECT_EQ(static_cast<int64_t>(found.min), kLeast);
  const Statistics unsigned_ones = statistics_of(at::tensor({int64_t{-2}, int64_t{1}}, at::kLong).view(at::kUInt64));
  EXPECT_EQ(static_cast<uint64_t>(unsigned_ones.max), std::numeric_limits<uint64_t>::max() - 1);
  EXPECT_EQ(static_cast<uint64_t>(unsigned_ones.min), 1u);
}

TEST(Statistics, OfFewElements) {
  EXPECT_EQ(statistics_of(at::empty({0, 3})).finite, 0);
  EXPECT_TRUE(std::isnan(statistics_of(at::empty({0})).deviation));
  const Statistics one = statistics_of(at::full({}, 7.0));
  EXPECT_EQ(one.mean, 7);
  EXPECT_TRUE(std::isnan(one.deviation));
}

// A mean that is large beside the deviation, over many parts, in any layout.
TEST(Statistics, LoseNothingOverManyParts) {
  constexpr int64_t kCount = 1'000'000;
  const at::Tensor numbers = at::arange(kCount, at::kDouble).remainder(2) + 1e9;
  const Statistics found = statistics_of(numbers.reshape({1000, 1000}).t());
  EXPECT_EQ(found.finite, kCount);
  EXPECT_DOUBLE_EQ(found.mean, 1e9 + 0.5);
  EXPECT_NEAR(found.deviation, std::sqrt(0.25 * kCount / (kCount - 1)), 1e-12);
}

}  // namespace
}  // namespace lockstep::checkpoint
