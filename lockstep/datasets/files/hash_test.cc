#include "lockstep/datasets/files/hash.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace lockstep::datasets {
namespace {

TEST(Hash, IsXxh3) {
  EXPECT_EQ(hex(xxh3(std::string_view(""))), "2d06800538d394c2");  // the library's own test vector
  const std::array<uint8_t, 3> bytes = {'a', 'b', 'c'};
  EXPECT_EQ(xxh3(bytes), xxh3("abc"));
  EXPECT_NE(xxh3("abc"), xxh3("abd"));
}

TEST(Hash, OfPiecesIsThatOfTheWhole) {
  std::vector<uint8_t> bytes(5000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i);
  Xxh3 pieces;
  EXPECT_EQ(pieces.value(), xxh3(""));
  pieces.add(std::span(bytes).first(1234));
  pieces.add(std::span(bytes).subspan(1234));
  EXPECT_EQ(pieces.value(), xxh3(bytes));
}

TEST(Hash, IsWrittenWithAllItsDigits) { EXPECT_EQ(hex(0xab), "00000000000000ab"); }

}  // namespace
}  // namespace lockstep::datasets
