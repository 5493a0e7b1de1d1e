// Ranks that wait for each other in a circle: on every backend each of them ends soon, with who waits in what.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/world/testing/nodes.h"
#include "lockstep/world/world.h"
#include "support/ranks.h"

namespace lockstep::network {
namespace {

using ::testing::HasSubstr;
using testing_support::init_on_nodes;
using testing_support::RankContext;
using testing_support::RankResult;
using testing_support::Ranks;

constexpr int kRanks = 4;
constexpr std::chrono::seconds kTimeout{60};  // a test that waits for it fails

std::shared_ptr<World> join(const RankContext& context) { return init_on_nodes(context, kTimeout); }

class Circles : public ::testing::TestWithParam<const char*> {
 protected:
  static std::vector<RankResult> run(const std::string& program) {
    const std::string backend = GetParam();
    const bool several = backend == "hierarchical";
    return Ranks(program, kRanks, testing_support::nodes(backend, several ? std::vector{2, 2} : std::vector{4})).wait();
  }
  // All ranks end with the same line, long before the timeout.
  static void expect_line(const std::string& program, const std::string& line) {
    for (const RankResult& rank : run(program)) {
      EXPECT_EQ(rank.exit_code, DesyncError::kExitCode) << rank.output;
      EXPECT_THAT(rank.output, HasSubstr(line));
      EXPECT_LT(rank.seconds, 30);
    }
  }
  static void expect_pass(const std::string& program) {
    for (const RankResult& rank : run(program)) EXPECT_EQ(rank.exit_code, 0) << rank.output;
  }
};

RANK_PROGRAM(ring_of_sends) {
  const auto world = join(context);
  const int next = (context.rank + 1) % context.size, before = (context.rank + context.size - 1) % context.size;
  const at::Tensor mine = at::ones({8}), theirs = at::zeros({8});
  world->communicator().send(mine, next);
  world->communicator().receive(theirs, before);
}

TEST_P(Circles, ARingOfSendsBeforeReceives) {
  expect_line(
      "ring_of_sends",
      "rank 0 waits in send to rank 1 (tag 0), rank 1 in send to rank 2 (tag 0), rank 2 in send to rank 3 "
      "(tag 0), rank 3 in send to rank 0 (tag 0): a send ends when it is received, and each of these ranks would "
      "receive after its send; use isend, receive, and then wait for the send");
}

RANK_PROGRAM(ring_with_isend) {
  const auto world = join(context);
  const int next = (context.rank + 1) % context.size, before = (context.rank + context.size - 1) % context.size;
  for (int turn = 0; turn < 3; ++turn) {
    const at::Tensor mine = at::ones({8}) * context.rank, theirs = at::zeros({4, 8}).t();  // not contiguous
    const auto sent = world->communicator().isend(mine, next, turn);
    const auto received = world->communicator().irecv(theirs.select(1, 2), before, turn);
    received->wait();
    sent->wait();
    EXPECT_TRUE(sent->done());
    EXPECT_EQ(theirs.sum().item<int>(), 8 * before);
  }
}

TEST_P(Circles, TheSameRingWithIsendGoesAround) { expect_pass("ring_with_isend"); }

RANK_PROGRAM(crossed_tags) {
  const auto world = join(context);
  const at::Tensor tensor = at::ones({8});
  if (context.rank == 0) world->communicator().send(tensor, 1, 3);
  if (context.rank == 1) world->communicator().receive(tensor, 0, 4);
  world->communicator().barrier();
}

TEST_P(Circles, TagsThatDontMatchAreNamed) {
  expect_line(
      "crossed_tags",
      "rank 0 waits in send to rank 1 (tag 3), rank 1 in receive from rank 0 (tag 4): only a send and a receive "
      "of one tag match");
}

RANK_PROGRAM(group_against_world) {
  const auto world = join(context);
  const auto group = world->communicator().split(context.rank < 2 ? 0 : 1);
  const at::Tensor tensor = at::ones({2, 2});
  (context.rank == 0 ? *group : world->communicator()).all_reduce(tensor, comm::ReduceOp::kSum);
}

TEST_P(Circles, AGroupsCollectiveIsToldFromTheWorlds) {
  const auto results = run("group_against_world");
  for (const RankResult& rank : results) {
    EXPECT_EQ(rank.exit_code, DesyncError::kExitCode) << rank.output;
    EXPECT_THAT(rank.output,
                ::testing::ContainsRegex(
                    "rank 0 waits in all_reduce #[0-9]+ \\[2, 2\\] Float sum of the group of ranks 0-1, rank 1 "
                    "in all_reduce #[0-9]+ \\[2, 2\\] Float sum of the world: every rank must make"));
    EXPECT_LT(rank.seconds, 30);
  }
}

RANK_PROGRAM(other_shapes) {
  const auto world = join(context);
  world->communicator().barrier();
  world->communicator().all_gather(context.rank == 0 ? at::ones({4}) : at::ones({2, 2}));
}

TEST_P(Circles, ShapesOfAnAllGatherMustBeEqual) {
  for (const RankResult& rank : run("other_shapes")) {
    EXPECT_EQ(rank.exit_code, DesyncError::kExitCode) << rank.output;
    EXPECT_THAT(rank.output, HasSubstr("rank 0 called all_gather #1 [4] Float"));
    EXPECT_THAT(rank.output, HasSubstr("1-3 called all_gather #1 [2, 2] Float"));
  }
}

// Waits that overlap without a circle: ranks that are late, and messages under way while their rank waits elsewhere.
RANK_PROGRAM(late_but_coming) {
  const auto world = join(context);
  auto& comm = world->communicator();
  const at::Tensor mine = at::ones({8}), theirs = at::zeros({8});
  const int other = context.rank ^ 1;
  const auto sent = comm.isend(mine, other), received = comm.irecv(theirs, other);
  if (context.rank == 3) std::this_thread::sleep_for(std::chrono::seconds(3));
  const auto group = comm.split(context.rank % 2);
  if (context.rank == 0) std::this_thread::sleep_for(std::chrono::seconds(3));
  group->barrier();
  received->wait();
  sent->wait();
  EXPECT_EQ(theirs.sum().item<int>(), 8);
  comm.barrier();
}

TEST_P(Circles, ALateRankIsWaitedFor) { expect_pass("late_but_coming"); }

RANK_PROGRAM(one_loop_ends) {
  const auto world = join(context);
  auto& comm = world->communicator();
  const at::Tensor gradient = at::ones({100});
  for (int step = 0; step < (context.rank == 1 ? 2 : 3); ++step)
    comm.fold({gradient}, {.label = "bucket 1/1 (w)"})->wait();
  if (context.argument.find("hierarchical") == std::string::npos) return;  // rank 1 leaves
  comm.barrier();
}

TEST_P(Circles, ALoopThatEndsEarlierIsTheLikelyCause) {
  const auto results = run("one_loop_ends");
  int told = 0;
  for (const size_t rank : {0, 2, 3}) {
    EXPECT_NE(results[rank].exit_code, 0);
    // A rank that comes late sees that one of those has ended which had found rank 1 gone.
    const bool is_told = results[rank].output.find("run the loop in ddp.join()") != std::string::npos;
    told += is_told ? 1 : 0;
    if (!is_told) EXPECT_THAT(results[rank].output, HasSubstr("the connection to rank "));
    EXPECT_LT(results[rank].seconds, 30);
  }
  EXPECT_GE(told, 1);
}

INSTANTIATE_TEST_SUITE_P(Backends, Circles, ::testing::Values("shm", "gloo", "hierarchical"),
                         [](const auto& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace lockstep::network
