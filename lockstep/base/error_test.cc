#include "lockstep/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace lockstep {
namespace {

TEST(Error, CarriesItsExitCodeAndLine) {
  try {
    throw DataError("a.idx", ": byte ", 4);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 65);
    EXPECT_STREQ(error.what(), "a.idx: byte 4");
  }
}

TEST(Error, EveryTypeHasTheCodeOfTheContract) {
  EXPECT_EQ(ConfigError("").exit_code(), 2);
  EXPECT_EQ(CommError("").exit_code(), 69);
  EXPECT_EQ(BugError("").exit_code(), 70);
  EXPECT_EQ(IoError("").exit_code(), 74);
  EXPECT_EQ(DesyncError("").exit_code(), 76);
}

TEST(Error, TypesAreTold) { EXPECT_THROW(throw IoError("disk"), IoError); }

TEST(Error, NamesAnErrno) { EXPECT_EQ(errno_text(ENOSPC), "No space left on device (errno 28)"); }

}  // namespace
}  // namespace lockstep
