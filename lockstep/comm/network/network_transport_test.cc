#include "lockstep/comm/network/network_transport.h"

#include <gtest/gtest.h>

#include "lockstep/comm/network/testing/local_mesh.h"
#include "lockstep/comm/testing/values.h"

namespace lockstep::comm {
namespace {

// Nodes of 3 and 2 ranks: 0-2 and 3-4.
TEST(NetworkTransport, JoinsTheSlicesOfNodesThatAreNoSubtrees) {
  const RankTable table{{0, 0, "a"}, {0, 1, "a"}, {0, 2, "a"}, {1, 0, "b"}, {1, 1, "b"}};
  const auto values = testing::inputs(5, at::kFloat, {900});
  const at::Tensor all = testing::expected(values, ReduceOp::kSum);
  testing::LocalWorld{.size = 5}.run_networks([&](const Network& network, int rank) {
    NetworkTransport transport(network, table, rank);
    EXPECT_EQ(transport.rails(), 2);
    EXPECT_EQ(transport.world_size(), 5);
    const bool first = rank < 3;
    const std::vector<std::vector<int>> subtrees =
        first ? std::vector<std::vector<int>>{{0, 1}, {2}} : std::vector<std::vector<int>>{{0}, {1}};
    EXPECT_EQ(transport.subtrees(), subtrees);
    const int rail = table[static_cast<size_t>(rank)].local_rank;
    if (rail >= transport.rails()) return;
    std::vector<at::Tensor> partials;
    for (const auto& subtree : subtrees) {
      std::vector<at::Tensor> own;
      for (const int local : subtree) {
        own.push_back(values[static_cast<size_t>(first ? local : 3 + local)].slice(0, 450 * rail, 450 * (rail + 1)));
      }
      partials.push_back(testing::expected(own, ReduceOp::kSum).clone());
    }
    transport.join(calls::all_reduce(at::empty({900})), partials)->wait();
    EXPECT_TRUE(at::equal(partials[0], all.slice(0, 450 * rail, 450 * (rail + 1))));
  });
}

}  // namespace
}  // namespace lockstep::comm
