#include "lockstep/comm/network/tree_join.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/comm/network/testing/local_mesh.h"
#include "lockstep/comm/testing/values.h"

namespace lockstep::comm {
namespace {

using testing::LocalWorld;

TEST(MaximalSubtrees, OfNodesThatAreSubtreesAndOthers) {
  const auto of = [](std::vector<bool> owned) { return maximal_subtrees(owned); };
  EXPECT_EQ(of({true, true, true, true}), (std::vector<Subtree>{{0, 4}}));
  EXPECT_EQ(of({true, true, false, false}), (std::vector<Subtree>{{0, 2}}));
  EXPECT_EQ(of({false, false, false, true, true, true}), (std::vector<Subtree>{{3, 1}, {4, 2}}));  // two nodes of 3
  EXPECT_EQ(of({true, true, true, false, false, false}), (std::vector<Subtree>{{0, 2}, {2, 1}}));
  EXPECT_EQ(of({true, false, true, false}), (std::vector<Subtree>{{0, 1}, {2, 1}}));  // ranks dealt out by turns
  EXPECT_EQ(of({false, false}), std::vector<Subtree>{});
}

// Nodes of any number of ranks, each bringing the partial sums of its maximal subtrees, end with the whole tree's bits.
TEST(TreeJoin, OfNodesGivesTheTreesBits) {
  const std::vector<std::vector<int>> worlds = {{1, 1}, {2, 2}, {3, 3}, {1, 2, 5}, {7, 1}, {4, 4, 4}};
  for (const auto& nodes : worlds) {
    int ranks = 0;
    for (const int n : nodes) ranks += n;
    const auto values = testing::inputs(ranks, at::kBFloat16, {1000});
    const at::Tensor expected = testing::expected(values, ReduceOp::kSum);
    JoinPlan plan{.leaves = ranks, .holdings = {}};
    int first = 0;
    for (const int n : nodes) {
      std::vector<bool> owned(static_cast<size_t>(ranks), false);
      for (int k = 0; k < n; ++k) owned[static_cast<size_t>(first++)] = true;
      plan.holdings.push_back(maximal_subtrees(owned));
    }
    LocalWorld{.size = static_cast<int>(nodes.size())}.run([&](NetworkCommunicator& comm) {
      std::vector<at::Tensor> partials;
      for (const Subtree& subtree : plan.holdings[static_cast<size_t>(comm.rank())]) {
        const std::vector<at::Tensor> own(values.begin() + subtree.first,
                                          values.begin() + subtree.first + subtree.count);
        partials.push_back(testing::expected(own, ReduceOp::kSum).clone());
      }
      comm.join(calls::all_reduce(expected), plan, partials)->wait();
      EXPECT_TRUE(at::equal(partials[0], expected)) << "rank " << comm.rank() << " of nodes " << nodes.size();
    });
  }
}

}  // namespace
}  // namespace lockstep::comm
