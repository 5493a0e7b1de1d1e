#include "lockstep/checkpoint/files/crc32.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <string>

namespace lockstep::checkpoint {
namespace {

std::string some_bytes(size_t count) {
  std::string bytes;
  uint32_t state = 1;
  while (bytes.size() < count) bytes += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

// The check value of every table of CRCs.
TEST(Crc32, IsZips) {
  EXPECT_EQ(crc32("123456789"), 0xcbf43926);
  EXPECT_EQ(crc32(""), 0);
}

TEST(Crc32, IsAnotherLibrarysAtEachLengthAndPlace) {
  const std::string bytes = some_bytes(70'000);
  for (size_t length = 0; length < 600; ++length) {
    const size_t from = length % 67;
    ASSERT_EQ(crc32(std::string_view(bytes).substr(from, length)), libdeflate_crc32(0, bytes.data() + from, length));
  }
  for (const size_t length : {4095, 4096, 4097, 65'535, 65'536, 69'001}) {
    ASSERT_EQ(crc32(std::string_view(bytes).substr(3, length)), libdeflate_crc32(0, bytes.data() + 3, length));
  }
}

TEST(Crc32, OfPartsIsThatOfTheWhole) {
  const std::string bytes = some_bytes(5'000);
  for (const size_t cut : {0, 1, 63, 2'048, 4'999, 5'000}) {
    const std::string_view first(bytes.data(), cut), second(bytes.data() + cut, bytes.size() - cut);
    EXPECT_EQ(crc32(second, crc32(first)), crc32(bytes)) << cut;
    EXPECT_EQ(joined_crc(crc32(first), crc32(second), second.size()), crc32(bytes)) << cut;
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
