#include "lockstep/comm/plugins/mpi/mpi_tag.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace lockstep::comm {
namespace {

constexpr uint32_t kLeast = 32767, kMost = 0x7fffffff;

TEST(MpiTag, StaysAsItIsWhereItFits) {
  EXPECT_EQ(mpi_tag(0, kMost), 0);
  EXPECT_EQ(mpi_tag(kMost, kMost), static_cast<int>(kMost));
  EXPECT_EQ(mpi_tag(1u << 30, kMost), 1 << 30);
}

TEST(MpiTag, FitsAnyBoundAndKeepsItsEnds) {
  for (const uint32_t bound : {kLeast, 40000u, 0x7fffffu, 0x0ffffffeu, kMost - 1}) {
    for (uint32_t tag = 0; tag < kMost - 12'345'678; tag += 12'345'678) {
      const int folded = mpi_tag(tag, bound);
      EXPECT_GE(folded, 0);
      EXPECT_LE(static_cast<uint32_t>(folded), bound);
      EXPECT_EQ(static_cast<uint32_t>(folded) & 63, tag & 63);
      const int highest = std::bit_width(uint64_t{bound} + 1) - 2;
      EXPECT_EQ(static_cast<uint32_t>(folded) >> highest, tag >> 30) << tag << " of " << bound;
    }
  }
}

TEST(MpiTag, KeepsUsersTagsApartAsFarAsBitsGo) {
  std::set<int> folded;
  for (uint32_t tag = 0; tag < 256; ++tag) folded.insert(mpi_tag((1u << 30) | tag << 6, kLeast));
  EXPECT_EQ(folded.size(), 256u);
}

}  // namespace
}  // namespace lockstep::comm
