#include "lockstep/base/split_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

using testing::ElementsAre;

TEST(SplitList, TakesThePiecesBetweenCommas) {
  EXPECT_THAT(split_list("a"), ElementsAre("a"));
  EXPECT_THAT(split_list("a,bc,d"), ElementsAre("a", "bc", "d"));
  EXPECT_THAT(split_list(",a,,b,"), ElementsAre("", "a", "", "b"));
  EXPECT_THAT(split_list(""), ElementsAre());
}

}  // namespace
}  // namespace lockstep
