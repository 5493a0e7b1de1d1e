#include "lockstep/comm/plugins/mpi/mpi_tag.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::comm {
namespace {

constexpr uint32_t kLeast = 32767, kMost = 0x7fffffff;

TEST(MpiTag, StaysAsItIsWhereItFits) {
  EXPECT_EQ(mpi_tag(0, kMost), 0);
  EXPECT_EQ(mpi_tag(kMost, kMost), static_cast<int>(kMost));
  EXPECT_EQ(mpi_tag(kLeast, kLeast), static_cast<int>(kLeast));
}

TEST(MpiTag, FitsAnyBoundAndKeepsItsLowBits) {
  for (const uint32_t bound : {kLeast, 40000u, 0x7fffffu, 0x0ffffffeu, kMost - 1}) {
    for (uint32_t tag = 0; tag < kMost - 12'345'678; tag += 12'345'678) {
      const int folded = mpi_tag(tag, bound);
      EXPECT_GE(folded, 0);
      EXPECT_LE(static_cast<uint32_t>(folded), bound);
      EXPECT_EQ(static_cast<uint32_t>(folded) & 511, tag & 511);
    }
  }
}

TEST(MpiTag, KeepsTheHashesApartAsFarAsBitsGo) {
  std::set<int> folded;
  for (uint32_t hash = 0; hash < 64; ++hash) folded.insert(mpi_tag((1u << 30) | hash << 9, kLeast));
  EXPECT_EQ(folded.size(), 64u);
}

}  // namespace
}  // namespace lockstep::comm
