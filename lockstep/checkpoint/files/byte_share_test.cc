#include "lockstep/checkpoint/files/byte_share.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::checkpoint {
namespace {

const std::vector<ByteRange> kRanges = {{64, 1000}, {1088, 0}, {1152, 4}, {1280, 64 * 1000}, {70000, 65}};

TEST(ByteShare, EveryByteIsOneRanksAndTheSharesAreEven) {
  for (const int ranks : {1, 2, 3, 4, 7, 64}) {
    std::vector<std::vector<int>> copies;
    for (const ByteRange& range : kRanges) copies.emplace_back(range.bytes, 0);
    uint64_t least = UINT64_MAX, most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      uint64_t lines = 0;
      for (const SharePart& part : share_of(kRanges, ranks, rank)) {
        EXPECT_EQ(part.first % 64, 0U);
        EXPECT_GT(part.bytes, 0U);
        ASSERT_LE(part.first + part.bytes, kRanges[part.range].bytes);
        for (uint64_t i = 0; i < part.bytes; ++i) ++copies[part.range][part.first + i];
        lines += (part.bytes + 63) / 64;
      }
      least = std::min(least, lines);
      most = std::max(most, lines);
    }
    EXPECT_LE(most - least, 1U) << ranks;
    for (const auto& range : copies) {
      EXPECT_TRUE(std::all_of(range.begin(), range.end(), [](int count) { return count == 1; })) << ranks;
    }
  }
}

TEST(ByteShare, NothingIsNobodys) {
  EXPECT_TRUE(share_of({}, 2, 0).empty());
  EXPECT_TRUE(share_of({}, 2, 1).empty());
}

}  // namespace
}  // namespace lockstep::checkpoint
