#include "lockstep/comm/fold_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep::comm {
namespace {

// The definition, by recursion: what the stream of leaves has to equal.
std::string whole_tree(size_t first, size_t n) {
  if (n == 1) return std::to_string(first);
  const size_t left = left_part(n);
  return "(" + whole_tree(first, left) + "+" + whole_tree(first + left, n - left) + ")";
}

std::string add(const std::string& a, const std::string& b) { return "(" + a + "+" + b + ")"; }

std::string streamed(size_t first, size_t n) {
  LeafFold<std::string> fold;
  for (size_t i = 0; i < n; ++i) fold.push(std::to_string(first + i), add);
  return fold.finish(add);
}

TEST(FoldTree, LeftPartIsTheLargestPowerOfTwoBelow) {
  EXPECT_EQ(left_part(2), 1u);
  EXPECT_EQ(left_part(3), 2u);
  EXPECT_EQ(left_part(4), 2u);
  EXPECT_EQ(left_part(7), 4u);
  EXPECT_EQ(left_part(8), 4u);
  EXPECT_EQ(left_part(9), 8u);
}

TEST(FoldTree, StreamedLeavesGiveTheTree) {
  for (size_t n = 1; n <= 40; ++n) EXPECT_EQ(streamed(0, n), whole_tree(0, n)) << n << " leaves";
}

// Ranks fold their block of lanes, then the blocks' values are folded over ranks: the tree over all lanes.
TEST(FoldTree, BlocksOfAPowerOfTwoLanesAreSubtrees) {
  for (size_t ranks = 1; ranks <= 12; ++ranks) {
    for (const size_t block : {1, 2, 4, 8}) {
      LeafFold<std::string> over_ranks;
      for (size_t r = 0; r < ranks; ++r) over_ranks.push(streamed(r * block, block), add);
      EXPECT_EQ(over_ranks.finish(add), whole_tree(0, ranks * block)) << ranks << " ranks of " << block;
    }
  }
}

// Each division of the leaves among two owners: the values of their maximal subtrees give the whole tree's.
TEST(FoldTree, StreamedSubtreesGiveTheTree) {
  for (size_t n = 1; n <= 11; ++n) {
    for (unsigned owners = 0; owners < 1u << n; ++owners) {
      std::vector<bool> first(n), second(n);
      for (size_t leaf = 0; leaf < n; ++leaf) first[leaf] = (owners >> leaf) % 2 == 1, second[leaf] = !first[leaf];
      std::vector<Subtree> parts = maximal_subtrees(first);
      for (const Subtree& part : maximal_subtrees(second)) parts.push_back(part);
      std::sort(parts.begin(), parts.end(), [](const Subtree& a, const Subtree& b) { return a.first < b.first; });
      LeafFold<std::string> fold;
      for (const Subtree& part : parts) {
        const auto from = static_cast<size_t>(part.first), count = static_cast<size_t>(part.count);
        fold.push(whole_tree(from, count), add, count);
      }
      ASSERT_EQ(fold.finish(add), whole_tree(0, n)) << n << " leaves, owned as " << owners;
    }
  }
}

}  // namespace
}  // namespace lockstep::comm
