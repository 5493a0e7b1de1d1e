// Ranks of two nodes that call different things: every rank ends with what each of them called.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/world/world.h"
#include "support/ranks.h"

namespace lockstep::network {
namespace {

using ::testing::HasSubstr;
using testing_support::RankContext;
using testing_support::Ranks;

constexpr int kRanks = 4, kNodes = 2;

// Joins a world of two nodes as torchrun would describe it; context.argument: "BACKEND PORT".
std::shared_ptr<World> join(const RankContext& context) {
  std::string backend, port;
  std::istringstream(context.argument) >> backend >> port;
  constexpr int kLocal = kRanks / kNodes;
  const std::map<std::string, int> numbers = {{"RANK", context.rank},
                                              {"WORLD_SIZE", context.size},
                                              {"LOCAL_RANK", context.rank % kLocal},
                                              {"LOCAL_WORLD_SIZE", kLocal},
                                              {"GROUP_RANK", context.rank / kLocal}};
  for (const auto& [name, number] : numbers) setenv(name.c_str(), std::to_string(number).c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", port.c_str(), 1);
  unsetenv("LOCKSTEP_NODE_MEMORY");  // each node makes its own
  return init({.backend = backend, .timeout = std::chrono::seconds(20)});
}

class TwoNodes : public ::testing::TestWithParam<const char*> {
 protected:
  static std::vector<testing_support::RankResult> run(const std::string& program) {
    return Ranks(program, kRanks, cat(GetParam(), ' ', free_port())).wait();
  }
  // All ranks: what a rank misses in its own line it may have been told by another.
  static void expect_desync(const std::string& program, const std::string& one, const std::string& others) {
    const auto results = run(program);
    for (size_t rank = 0; rank < results.size(); ++rank) {
      EXPECT_EQ(results[rank].exit_code, DesyncError::kExitCode) << results[rank].output;
      EXPECT_THAT(results[rank].output, HasSubstr(one)) << "rank " << rank;
      EXPECT_THAT(results[rank].output, HasSubstr(others)) << "rank " << rank;
    }
  }
};

RANK_PROGRAM(agree) {
  const auto world = join(context);
  EXPECT_STREQ(world->communicator().backend(), context.argument.substr(0, context.argument.find(' ')).c_str());
  const at::Tensor ones = at::ones({1000});
  world->communicator().all_reduce(ones, comm::ReduceOp::kSum);
  EXPECT_EQ(ones[999].item<float>(), static_cast<float>(context.size));
}

TEST_P(TwoNodes, AgreeAndReduce) {
  for (const auto& rank : run("agree")) EXPECT_EQ(rank.exit_code, 0) << rank.output;
}

RANK_PROGRAM(other_shape) {
  const auto world = join(context);
  world->communicator().all_reduce(at::ones({context.rank == 1 ? 64 : 1000}), comm::ReduceOp::kSum);
}

TEST_P(TwoNodes, OtherShapesAreNamed) {
  expect_desync("other_shape", "rank 1 called all_reduce #0 [64] Float",
                "ranks 0, 2-3 called all_reduce #0 [1000] Float");
}

RANK_PROGRAM(other_shape_of_a_node) {
  const auto world = join(context);
  world->communicator().all_reduce(at::ones({context.rank >= 2 ? 64 : 1000}), comm::ReduceOp::kSum);
}

TEST_P(TwoNodes, ShapesThatDifferByNodeAreNamed) {
  // In a hierarchy the ranks of one slice compare, each with its like on the other node.
  expect_desync("other_shape_of_a_node", "3 called all_reduce #0 [64] Float", "1 called all_reduce #0 [1000] Float");
}

RANK_PROGRAM(other_call) {
  const auto world = join(context);
  world->communicator().barrier();
  if (context.rank == 1) {
    world->communicator().broadcast(at::ones({64}), 0);
  } else {
    world->communicator().all_reduce(at::ones({1000}), comm::ReduceOp::kSum);
  }
}

TEST_P(TwoNodes, OtherCallsAreNamed) {
  expect_desync("other_call", "rank 1 called broadcast #1 [64] Float",
                "ranks 0, 2-3 called all_reduce #1 [1000] Float");
}

INSTANTIATE_TEST_SUITE_P(Backends, TwoNodes, ::testing::Values("gloo", "hierarchical"),
                         [](const auto& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace lockstep::network
