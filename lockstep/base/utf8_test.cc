#include "lockstep/base/utf8.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Utf8, IsWellFormed) {
  for (const char* text : {"", "cats", "Füchse", "猫", "\U0001f408"}) EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text : {"F\xfc"
                           "chse",
                           "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe7\x8c", "\x80"}) {
    EXPECT_FALSE(is_utf8(text)) << text;
  }
}

}  // namespace
}  // namespace lockstep
