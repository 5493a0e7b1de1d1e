#include "lockstep/comm/network/group_numbers.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

TEST(GroupNumbers, AreTakenUntilNoneIsLeftAndComeBack) {
  GroupNumbers numbers;
  int taken = 0, last = 0;
  for (; GroupNumbers::first_free(numbers.in_use()) >= 0; ++taken) {
    last = GroupNumbers::first_free(numbers.in_use());
    numbers.take(last);
  }
  EXPECT_EQ(taken, GroupNumbers::kMost - 2) << "but those of the world and of rails";
  EXPECT_EQ(last, GroupNumbers::kMost - 1);
  numbers.release(40);
  EXPECT_EQ(GroupNumbers::first_free(numbers.in_use()), 40);
}

}  // namespace
}  // namespace lockstep::comm
