#include "lockstep/base/late_number.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(LateNumber, OfAValueIsThere) {
  const LateNumber number = 3;
  EXPECT_TRUE(number.is_there());
  EXPECT_EQ(number, 3);
  EXPECT_EQ(LateNumber(), 0);
}

TEST(LateNumber, IsReadOnceByAllItsCopies) {
  int reads = 0;
  const LateNumber number([&] { return ++reads + 0.5; });
  const LateNumber copy = number;
  EXPECT_FALSE(copy.is_there());
  EXPECT_EQ(reads, 0);
  EXPECT_EQ(copy, 1.5);
  EXPECT_EQ(number, 1.5);
  EXPECT_TRUE(number.is_there());
  EXPECT_EQ(reads, 1);
}

}  // namespace
}  // namespace lockstep
