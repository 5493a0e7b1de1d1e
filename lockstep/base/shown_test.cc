#include "lockstep/base/shown.h"

#include <gtest/gtest.h>

#include "lockstep/base/utf8.h"

namespace lockstep {
namespace {

TEST(Shown, IsOneLine) {
  EXPECT_EQ(shown("two\nlines \x1b[1m gr\xc3\xbc\xc3\x9f"), "two\\nlines \\x1b[1m gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(shown("\r\t\x7f"), "\\x0d\\x09\\x7f");
  EXPECT_EQ(shown(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(shown(""), "");
}

// A terminal takes 0x9b, and the character of that number, for the escape that begins a command.
TEST(Shown, HasNoControlCharactersAboveAscii) {
  EXPECT_EQ(shown("\xc2\x9b"
                  "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(shown("\x9b"
                  "31m"),
            "\\x9b31m");
  EXPECT_EQ(shown("\xc2\xa0"), "\xc2\xa0");
}

TEST(Shown, KeepsCharactersOfAnyLength) {
  for (const char* text : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\x88", "\xf4\x8f\xbf\xbf", "\xef\xbf\xbd"}) {
    EXPECT_EQ(shown(text), text);
  }
}

TEST(Shown, WritesOutWhatIsNoUtf8) {
  EXPECT_EQ(shown("\xff\xfe.jpg"), "\\xff\\xfe.jpg");
  EXPECT_EQ(shown("\xe2\x82"), "\\xe2\\x82") << "cut";
  EXPECT_EQ(shown("\xe2\x82x"), "\\xe2\\x82x") << "cut";
  EXPECT_EQ(shown("\xc0\x8a"), "\\xc0\\x8a") << "a line's end in two bytes";
  EXPECT_EQ(shown("\xe0\x80\x8a"), "\\xe0\\x80\\x8a");
  EXPECT_EQ(shown("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair of UTF-16";
  EXPECT_EQ(shown("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last one";
  EXPECT_EQ(shown("\xfc\x80"), "\\xfc\\x80");
}

TEST(Shown, AnyNameIsUtf8) {
  EXPECT_EQ(shown("F\xc3\xbc"
                  "chse"),
            "F\xc3\xbc"
            "chse");
  EXPECT_EQ(shown("F\xfc"
                  "chse"),
            "F\\xfcchse");
  EXPECT_EQ(shown("a\nb\x1b[2J\x7f"), "a\\nb\\x1b[2J\\x7f");
  for (const char* text : {"F\xfc", "\xe2\x82", "\x9b", "\xc2\x9b", "\xed\xa0\x80"}) EXPECT_TRUE(is_utf8(shown(text)));
}

}  // namespace
}  // namespace lockstep
