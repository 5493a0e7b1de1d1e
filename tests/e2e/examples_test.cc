// Examples whose weights do not depend on the number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;

TEST(Examples, TheGanHasTheSameBitsAtAnyWorldSize) {
  const std::string program = bin_folder() + "/example_gan";
  const Result one = Program({.command = {program, "20"}}).wait();
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("step 20: loss "));
  EXPECT_THAT(one.out, HasSubstr("weights "));
  for (const char* ranks : {"2", "4"}) {
    const Result several = lockstep({"launch", "--nproc", ranks, program, "20"});
    EXPECT_EQ(several.exit_code, 0) << several.err;
    EXPECT_EQ(several.out, one.out) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace lockstep::e2e
