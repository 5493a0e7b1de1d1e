#include "lockstep/datasets/files/hash.h"

#include <gtest/gtest.h>

#include <array>

namespace lockstep::datasets {
namespace {

TEST(Hash, IsXxh3) {
  EXPECT_EQ(hex(xxh3(std::string_view(""))), "2d06800538d394c2");  // the library's own test vector
  const std::array<uint8_t, 3> bytes = {'a', 'b', 'c'};
  EXPECT_EQ(xxh3(bytes), xxh3("abc"));
  EXPECT_NE(xxh3("abc"), xxh3("abd"));
}

TEST(Hash, IsWrittenWithAllItsDigits) { EXPECT_EQ(hex(0xab), "00000000000000ab"); }

}  // namespace
}  // namespace lockstep::datasets
