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

// libtorch writes its stack behind its own text.
TEST(ExceptionText, AStackIsLeftOut) {
  EXPECT_EQ(text_of(std::runtime_error("no memory\nof that size\nException raised from f at a.cpp:3\nframe #0")),
            "no memory\nof that size");
}

TEST(ExceptionText, AnythingMayBeThrown) { EXPECT_EQ(text_of(42), "an exception that is no std::exception"); }

}  // namespace
}  // namespace lockstep
