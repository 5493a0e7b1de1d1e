#include "lockstep/data/fingerprint.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::data {
namespace {

TEST(Fingerprint, IsXxh3) {
  EXPECT_EQ(Fingerprint().hex(), "2d06800538d394c2");  // of nothing, as XXH3's documentation has it
}

TEST(Fingerprint, IsOfTheBytesWhateverThePieces) {
  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5};
  Fingerprint whole, pieces, other;
  whole.add(std::span(bytes));
  pieces.add(bytes.data(), 2);
  pieces.add(bytes.data() + 2, 3);
  other.add(bytes.data(), 4);
  EXPECT_EQ(whole.hex(), pieces.hex());
  EXPECT_NE(whole.hex(), other.hex());
  EXPECT_EQ(whole.hex().size(), 16u);
}

}  // namespace
}  // namespace lockstep::data
