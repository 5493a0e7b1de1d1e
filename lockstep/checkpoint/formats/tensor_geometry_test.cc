#include "lockstep/checkpoint/formats/tensor_geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST(TensorGeometry, WhatLiesInsideIsRight) {
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {2, 3}, .strides = {3, 1}}, 6), IsEmpty());
  EXPECT_THAT(geometry_fault({.offset = 1, .sizes = {2, 3}, .strides = {1, 2}}, 7), IsEmpty());  // a view, transposed
  EXPECT_THAT(geometry_fault({.offset = 5, .sizes = {}, .strides = {}}, 6), IsEmpty());          // a scalar
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {0, 3}, .strides = {3, 1}}, 0), IsEmpty());  // no elements
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {7}, .strides = {0}}, 1), IsEmpty());        // expanded
}

TEST(TensorGeometry, WhatReachesOutIsNot) {
  EXPECT_THAT(geometry_fault({.offset = 1, .sizes = {2, 3}, .strides = {3, 1}}, 6), HasSubstr("reaches element 6"));
  EXPECT_THAT(geometry_fault({.offset = 6, .sizes = {}, .strides = {}}, 6), HasSubstr("reaches element 6"));
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {2}, .strides = {6}}, 6), HasSubstr("reaches element 6"));
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {1}, .strides = {1}}, 0), HasSubstr("reaches element 0"));
}

TEST(TensorGeometry, NegativeNumbersAreRefused) {
  EXPECT_THAT(geometry_fault({.offset = -1, .sizes = {1}, .strides = {1}}, 6), HasSubstr("negative offset"));
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {-4}, .strides = {1}}, 6), HasSubstr("negative size"));
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {2}, .strides = {-1}}, 6), HasSubstr("negative strides"));
}

TEST(TensorGeometry, NoNumberOverflows) {
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {kHuge, kHuge}, .strides = {0, 0}}, 6), HasSubstr("no memory"));
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {kHuge}, .strides = {kHuge}}, 6), HasSubstr("no memory"));
  EXPECT_THAT(geometry_fault({.offset = kHuge, .sizes = {2}, .strides = {1}}, 6), HasSubstr("no memory"));
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {0, kHuge, kHuge}, .strides = {1, 1, 1}}, 6),
              HasSubstr("no memory"));
  EXPECT_THAT(geometry_fault({.offset = kHuge, .sizes = {}, .strides = {}}, 6), HasSubstr("reaches element"));
}

TEST(TensorGeometry, DimensionsMustAgreeAndBeFew) {
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = {2}, .strides = {}}, 6), HasSubstr("1 sizes and 0 strides"));
  const std::vector<int64_t> ones(65, 1);
  EXPECT_THAT(geometry_fault({.offset = 0, .sizes = ones, .strides = ones}, 6), HasSubstr("65 dimensions"));
}

TEST(TensorGeometry, CountsAndEnds) {
  const TensorGeometry view{.offset = 4, .sizes = {2, 3}, .strides = {10, 2}};
  EXPECT_EQ(element_count(view), 6);
  EXPECT_EQ(element_end(view), 4 + 10 + 4 + 1);
  EXPECT_EQ(element_end({.offset = 4, .sizes = {0}, .strides = {1}}), 4);
}

}  // namespace
}  // namespace lockstep::checkpoint
