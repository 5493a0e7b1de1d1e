#include "lockstep/base/xxh3.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace lockstep {
namespace {

TEST(Xxh3, IsTheLibrarys) {
  EXPECT_EQ(hex(xxh3(std::string_view(""))), "2d06800538d394c2");  // of nothing, as XXH3's documentation has it
  EXPECT_EQ(hex(Xxh3().value()), "2d06800538d394c2");
  const std::array<uint8_t, 3> bytes = {'a', 'b', 'c'};
  EXPECT_EQ(xxh3(bytes), xxh3("abc"));
  EXPECT_NE(xxh3("abc"), xxh3("abd"));
}

TEST(Xxh3, OfPiecesIsThatOfTheWhole) {
  std::vector<uint8_t> bytes(5000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i);
  Xxh3 pieces, whole, other;
  EXPECT_EQ(pieces.value(), xxh3(""));
  pieces.add(std::span<const uint8_t>(bytes).first(1234));
  pieces.add(bytes.data() + 1234, bytes.size() - 1234);
  whole.add(std::span<const uint8_t>(bytes));
  other.add(bytes.data(), bytes.size() - 1);
  EXPECT_EQ(pieces.value(), xxh3(bytes));
  EXPECT_EQ(pieces.value(), whole.value());
  EXPECT_NE(pieces.value(), other.value());
}

TEST(Xxh3, IsWrittenWithAllItsDigits) {
  EXPECT_EQ(hex(0xab), "00000000000000ab");
  EXPECT_EQ(hex(xxh3("abc")).size(), 16u);
}

}  // namespace
}  // namespace lockstep
