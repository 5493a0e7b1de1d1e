#include "lockstep/checkpoint/files/byte_sums.h"

#include <gtest/gtest.h>

#include <string>

#include "lockstep/checkpoint/files/crc32.h"

namespace lockstep::checkpoint {
namespace {

const std::string kFile = [] {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 37 % 251);
  return bytes;
}();

uint32_t crc(size_t offset, size_t bytes) { return crc32(std::string_view(kFile).substr(offset, bytes)); }
ByteSum sum(size_t offset, size_t bytes) { return {offset, bytes, crc(offset, bytes)}; }

TEST(ByteSums, ArePutTogether) {
  const ByteSums sums({sum(600, 400), sum(100, 1), sum(101, 399), sum(500, 100)});
  EXPECT_EQ(sums.of(100, 400), crc(100, 400));
  EXPECT_EQ(sums.of(500, 500), crc(500, 500));
  EXPECT_EQ(sums.of(100, 900), crc(100, 900));
  EXPECT_EQ(sums.of(600, 400), crc(600, 400));
  EXPECT_EQ(sums.of(5, 0), 0U) << "of nothing";
}

TEST(ByteSums, AreNoneWhereTheyDontCoverTheBytes) {
  const ByteSums sums({sum(100, 100), sum(200, 100), sum(350, 50), sum(250, 50), {.offset = 400}});
  EXPECT_EQ(sums.of(100, 100), crc(100, 100));
  EXPECT_EQ(sums.of(90, 110), std::nullopt) << "begin before";
  EXPECT_EQ(sums.of(150, 50), std::nullopt) << "begin within";
  EXPECT_EQ(sums.of(100, 150), std::nullopt) << "end within";
  EXPECT_EQ(sums.of(200, 200), std::nullopt) << "a gap";
  EXPECT_EQ(sums.of(100, 250), std::nullopt) << "an overlap, and none further on";
  EXPECT_EQ(sums.of(400, 10), std::nullopt) << "an empty one";
  EXPECT_EQ(ByteSums({}).of(0, 1), std::nullopt);
}

}  // namespace
}  // namespace lockstep::checkpoint
