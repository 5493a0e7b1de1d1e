#include "lockstep/parallel/options/parallel_options.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

TEST(ParallelOptions, AutoBecomesANumber) {
  ParallelOptions options;
  config::OptionSet rows;
  options.declare(rows);
  const config::GivenOption given{"nproc", "auto"};
  rows.apply({&given, 1});
  options.resolve(3);
  EXPECT_EQ(options.nproc, 3);
  options.nproc = 0;
  options.lanes = 8;
  options.resolve(3);
  EXPECT_EQ(options.nproc, 2);
  options.nproc = 3;
  EXPECT_THROW(options.resolve(3), ConfigError);
}

TEST(ParallelOptions, LanesFollowTheWorldSizeUnlessSaid) {
  ParallelOptions options;
  EXPECT_EQ(options.lanes_of(3), 3);
  options.lanes = 8;
  EXPECT_EQ(options.lanes_of(2), 8);
}

}  // namespace
}  // namespace lockstep::parallel
