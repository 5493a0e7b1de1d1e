#include "lockstep/base/exception_text.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lockstep {
namespace {

template <typename Thrown>
std::string text_of(Thrown thrown) {
  try {
    throw thrown;
  } catch (...) {
    return exception_text();
  }
}

TEST(ExceptionText, IsWhatTheExceptionSays) { EXPECT_EQ(text_of(std::runtime_error("disk full")), "disk full"); }

TEST(ExceptionText, AnythingMayBeThrown) { EXPECT_EQ(text_of(42), "an exception that is no std::exception"); }

}  // namespace
}  // namespace lockstep
