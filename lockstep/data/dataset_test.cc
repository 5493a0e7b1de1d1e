#include "lockstep/data/dataset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

TEST(Dataset, SaysNothingThatItDoesNotKnow) {
  const TensorDataset points(at::zeros({3, 2}));
  EXPECT_EQ(points.name_of(2), "sample 2");
  EXPECT_EQ(points.class_of(2), -1);
  EXPECT_EQ(points.classes(), 0);
  EXPECT_EQ(points.transforms(), "");
  EXPECT_EQ(points.for_evaluation(), nullptr);
  EXPECT_FALSE(points.decodes());
  EXPECT_TRUE(points.class_names().empty());
  EXPECT_TRUE(points.listing().empty());
}

TEST(Dataset, RefusesNumbersOutOfItsRange) {
  check_index(0, 3);
  check_index(2, 3);
  EXPECT_THROW(check_index(3, 3), BugError);
  EXPECT_THROW(check_index(-1, 3), BugError);
  EXPECT_THROW(check_index(0, 0), BugError);
}

TEST(ReadStats, AddUp) {
  ReadStats sum{.read_ns = 1, .decode_ns = 2, .transform_ns = 3, .bytes = 4};
  sum += {.read_ns = 10, .decode_ns = 20, .transform_ns = 30, .bytes = 40};
  EXPECT_EQ(sum.read_ns, 11);
  EXPECT_EQ(sum.decode_ns, 22);
  EXPECT_EQ(sum.transform_ns, 33);
  EXPECT_EQ(sum.bytes, 44);
}

}  // namespace
}  // namespace lockstep::data
