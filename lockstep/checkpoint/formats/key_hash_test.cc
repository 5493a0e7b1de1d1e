#include "lockstep/checkpoint/formats/key_hash.h"

#include <gtest/gtest.h>

namespace lockstep::checkpoint {
namespace {

// Computed by the reference's definition, with the key 00 01 … 0f and the messages 00 01 02 …
TEST(KeyHash, IsSipHash13) {
  const std::array<uint64_t, 2> secret{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  for (int i = 0; i < 16; ++i) text += static_cast<char>(i);
  EXPECT_EQ(sip_hash("", secret), 0xabac0158050fc4dc);
  EXPECT_EQ(sip_hash(text.substr(0, 1), secret), 0xc9f49bf37d57ca93);
  EXPECT_EQ(sip_hash(text.substr(0, 8), secret), 0x369095118d299a8e);
  EXPECT_EQ(sip_hash(text.substr(0, 15), secret), 0xd320d86d2a519956);
}

TEST(KeyHash, TellsNumbersFromEachOther) {
  EXPECT_EQ(key_hash("a"), key_hash("a"));
  EXPECT_NE(key_hash("a"), key_hash("b"));
  EXPECT_NE(key_hash(int64_t{1}), key_hash(int64_t{2}));
}

}  // namespace
}  // namespace lockstep::checkpoint
