#include "lockstep/data/subset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

// Sample i is the number i.
std::shared_ptr<const Dataset> numbers(int64_t size) { return std::make_shared<TensorDataset>(at::arange(size)); }

using ::testing::HasSubstr;

TEST(HoldOut, PartsTheSamplesByTheSeedAlone) {
  const HoldOut parts = hold_out(1000, 12.5, 3);
  EXPECT_EQ(parts.validation.size(), 125u);
  std::vector<int64_t> all;
  std::merge(parts.train.begin(), parts.train.end(), parts.validation.begin(), parts.validation.end(),
             std::back_inserter(all));
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i);
  EXPECT_EQ(hold_out(1000, 12.5, 3).validation, parts.validation);
  EXPECT_NE(hold_out(1000, 12.5, 4).validation, parts.validation);
  EXPECT_LT(parts.validation.front(), 100);  // from all over, not a block
  EXPECT_GT(parts.validation.back(), 900);
}

TEST(HoldOut, RoundsDownAndChecksItsShare) {
  EXPECT_EQ(hold_out(24, 10, 0).validation.size(), 2u);
  EXPECT_TRUE(hold_out(24, 0, 0).validation.empty());
  EXPECT_THROW(hold_out(24, 1, 0), ConfigError);
  EXPECT_THROW(hold_out(24, 100, 0), ConfigError);
  EXPECT_THROW(hold_out(24, -1, 0), ConfigError);
  EXPECT_THROW(hold_out(24, std::numeric_limits<double>::quiet_NaN(), 0), ConfigError);
}

TEST(Subset, RenumbersItsBase) {
  const auto base = numbers(20);
  const auto some = subset(base, {19, 4}, "two");
  EXPECT_EQ(some->size(), 2);
  EXPECT_EQ(some->description(), "two");
  EXPECT_TRUE(at::equal(read_batch(*some, std::vector<int64_t>{1, 0}).data(),
                        read_batch(*base, std::vector<int64_t>{4, 19}).data()));
  EXPECT_THROW(subset(base, {20}, "beyond"), BugError);
}

TEST(WithValidation, HoldsOutTrainingSamples) {
  const Splits splits{.train = numbers(200), .test = numbers(10), .validation = nullptr};
  const Splits held = with_validation(splits, 10, 1);
  EXPECT_EQ(held.train->size(), 180);
  EXPECT_EQ(held.validation->size(), 20);
  EXPECT_EQ(held.test, splits.test);
  EXPECT_THAT(held.validation->description(), HasSubstr("validating on 20 of tensors data, 200 samples"));
  EXPECT_EQ(with_validation(splits, 0, 1).train, splits.train);
}

}  // namespace
}  // namespace lockstep::data
