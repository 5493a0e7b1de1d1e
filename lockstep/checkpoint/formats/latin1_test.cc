#include "lockstep/checkpoint/formats/latin1.h"

#include <gtest/gtest.h>

namespace lockstep::checkpoint {
namespace {

TEST(Latin1, EveryByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string text = latin1_encode(bytes);
  ASSERT_EQ(latin1_length(text), bytes.size());
  std::string back(bytes.size(), '?');
  latin1_decode(text, back.data());
  EXPECT_EQ(back, bytes);
}

TEST(Latin1, OtherCharactersAndBrokenTextAreRefused) {
  for (const char* text : {"\xe2\x82\xac", "\xc4\x80", "\xc3", "\xc3(", "\x80", "\xff"}) {
    EXPECT_EQ(latin1_length(text), std::nullopt) << text;
  }
  EXPECT_EQ(latin1_length(""), 0u);
}

}  // namespace
}  // namespace lockstep::checkpoint
