#include "lockstep/parallel/options/lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

TEST(World, ARankNeedsAPowerOfTwoOfLanes) {
  for (const auto& [nproc, lanes] :
       {std::pair{1, 0}, {1, 1}, {1, 7}, {2, 0}, {3, 0}, {3, 3}, {3, 12}, {2, 8}, {4, 4}}) {
    EXPECT_NO_THROW(check_lanes(nproc, lanes)) << nproc << " of " << lanes;
  }
  for (const auto& [nproc, lanes] : {std::pair{3, 4}, {2, 1}, {2, 6}, {4, 2}, {3, 9}, {64, 3}}) {
    EXPECT_THROW(check_lanes(nproc, lanes), ConfigError) << nproc << " of " << lanes;
  }
}

TEST(World, TheRefusalSaysWhatWouldDo) {
  try {
    check_lanes(3, 4);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "--nproc 3 --lanes 4: each rank needs a power of two of lanes; with 4 lanes use --nproc 1, 2 or 4, or "
                 "with 3 ranks --lanes 3, 6 or 12");
  }
}

TEST(World, AutoTakesTheMostRanksThatFit) {
  EXPECT_EQ(fitting_nproc(8, 0), 8);
  EXPECT_EQ(fitting_nproc(3, 4), 2);
  EXPECT_EQ(fitting_nproc(8, 6), 6);
  EXPECT_EQ(fitting_nproc(5, 6), 3);
  EXPECT_EQ(fitting_nproc(2, 7), 1);
  EXPECT_EQ(fitting_nproc(1000, 0), 64);
  EXPECT_EQ(fitting_nproc(6, 4, /*nodes=*/2), 2);
  EXPECT_EQ(fitting_nproc(6, 3, /*nodes=*/2), 0);
}

TEST(World, ThreadsFollowLanesNotRanks) {
  EXPECT_EQ(default_threads(16, 4), 4);
  EXPECT_EQ(default_threads(2, 4), 1);
  EXPECT_EQ(default_threads(7, 2), 3);
  EXPECT_EQ(threads_or_default(0, 16, 4), 4);
  EXPECT_EQ(threads_or_default(5, 16, 4), 5);
}

}  // namespace
}  // namespace lockstep::parallel
