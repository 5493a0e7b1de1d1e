#include "lockstep/parallel/bucket_plan.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

using Buckets = std::vector<std::vector<size_t>>;
constexpr int64_t kMb = 1 << 20;

Buckets plan(const std::vector<ParameterSize>& sizes) {
  return plan_buckets(sizes, {.bucket_mb = 4, .first_bucket_mb = 1});
}

TEST(BucketPlan, ReverseOrderFirstOneSmall) {
  const auto f = c10::ScalarType::Float;
  EXPECT_EQ(plan({{kMb, f}, {2 * kMb, f}, {3 * kMb, f}, {kMb / 2, f}, {kMb / 2, f}}), (Buckets{{4, 3}, {2, 1}, {0}}));
}

TEST(BucketPlan, SmallModelsAreOneBucket) {
  const auto f = c10::ScalarType::Float;
  EXPECT_EQ(plan({{100, f}, {200, f}}), (Buckets{{1, 0}}));
  EXPECT_EQ(plan({}), Buckets{});
}

TEST(BucketPlan, ALargeParameterClosesItsBucket) {
  const auto f = c10::ScalarType::Float;
  EXPECT_EQ(plan({{100, f}, {100 * kMb, f}, {100, f}}), (Buckets{{2, 1}, {0}}));
}

TEST(BucketPlan, ABucketHoldsOneDtype) {
  const auto f = c10::ScalarType::Float, b = c10::ScalarType::BFloat16;
  EXPECT_EQ(plan({{100, f}, {100, b}, {100, f}, {100, b}}), (Buckets{{3, 1}, {2, 0}}));
}

TEST(BucketPlan, ABucketIsOnOneDevice) {
  const auto f = c10::ScalarType::Float;
  const c10::Device first("cuda:0"), second("cuda:1");
  EXPECT_EQ(plan({{100, f, first}, {100, f}, {100, f, second}, {100, f, first}}), (Buckets{{2}, {1}, {3, 0}}));
}

TEST(BucketPlan, MarkedParametersCloseTheirBuckets) {
  const auto f = c10::ScalarType::Float;
  ParameterSize small{.bytes = 100, .dtype = f}, marked = small, large = small;
  marked.closes = true;
  large.bytes = 9 * kMb;
  EXPECT_EQ(plan({small, large, marked, small, marked, large}), (Buckets{{5, 4}, {3, 2}, {1, 0}}));
}

}  // namespace
}  // namespace lockstep::parallel
