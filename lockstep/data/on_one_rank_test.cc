#include "lockstep/data/on_one_rank.h"

#include <gtest/gtest.h>

namespace lockstep::data {
namespace {

TEST(OnOneRank, EachRankComputesByDefault) {
  const OnOneRank itself, copy = itself;
  EXPECT_EQ(itself([] { return "here"; }), "here");
  EXPECT_EQ(copy([] { return "here"; }), "here");
}

TEST(OnOneRank, TheOneRanksTextCounts) {
  int computed = 0;
  const OnOneRank elsewhere = [&](const OnOneRank::Compute& compute) { return ++computed, compute() + " there"; };
  const OnOneRank copy = elsewhere;
  EXPECT_EQ(copy([] { return "here"; }), "here there");
  EXPECT_EQ(computed, 1);
}

}  // namespace
}  // namespace lockstep::data
