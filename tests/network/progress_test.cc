// Ranks of two nodes that wait for a slow one: beyond the timeout as long as it makes progress, and no longer.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/world/testing/nodes.h"
#include "lockstep/world/world.h"
#include "support/ranks.h"

namespace lockstep::network {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing_support::RankContext;
using testing_support::Ranks;

constexpr milliseconds kTimeout{1500};

// As a rank that saves a large checkpoint for three timeouts, or is stuck in that.
void be_slow(World& world, bool beats) {
  world.self().doing.set("saving step 7");
  for (const Deadline end(3 * kTimeout); !end.passed();) {
    std::this_thread::sleep_for(milliseconds(100));
    if (beats) world.self().beat_ns.store(monotonic_ns());
  }
  world.self().doing.set("");
}

// Which rank is slow, in the environment of the ranks.
int slow_rank() { return static_cast<int>(*env_int("LOCKSTEP_TEST_SLOW", 0, 64)); }

void expect_sum(comm::Communicator& comm) {
  const at::Tensor ones = at::ones({200'000});
  comm.all_reduce(ones, comm::ReduceOp::kSum);
  EXPECT_TRUE(ones.eq(comm.size()).all().item<bool>());
}

struct Nodes {
  std::string backend;
  std::vector<int> ranks;
  int slow;
};

class Slow : public ::testing::TestWithParam<Nodes> {
 protected:
  static std::vector<testing_support::RankResult> run(const std::string& program) {
    const Nodes& nodes = GetParam();
    return Ranks(program, testing_support::rank_count(nodes.ranks), testing_support::nodes(nodes.backend, nodes.ranks),
                 {{"LOCKSTEP_TEST_SLOW", std::to_string(nodes.slow)}, {"OMP_NUM_THREADS", "1"}})
        .wait();
  }
  static void expect_all_pass(const std::string& program) {
    for (const auto& rank : run(program)) EXPECT_EQ(rank.exit_code, 0) << rank.output;
  }
};

RANK_PROGRAM(waits_beyond_the_timeout) {
  const auto world = testing_support::init_on_nodes(context, kTimeout);
  auto& comm = world->communicator();
  expect_sum(comm);
  if (context.rank == slow_rank()) be_slow(*world, /*beats=*/true);
  expect_sum(comm);
  if (context.rank == slow_rank()) be_slow(*world, /*beats=*/true);
  comm.barrier();
}

TEST_P(Slow, ARankThatMakesProgressIsWaitedForBeyondTheTimeout) { expect_all_pass("waits_beyond_the_timeout"); }

RANK_PROGRAM(gives_up_at_the_timeout) {
  const auto world = testing_support::init_on_nodes(context, kTimeout);
  auto& comm = world->communicator();
  comm.barrier();
  if (context.rank == slow_rank()) return be_slow(*world, /*beats=*/false);
  try {
    expect_sum(comm);
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    // A rank of the other node, which waits for the slow one itself, may be named in its place.
    const std::string slow = cat("rank ", slow_rank(), " (");
    EXPECT_THAT(error.what(), AnyOf(AllOf(HasSubstr(slow), HasSubstr("is alive, saving step 7")),
                                    HasSubstr("is alive, waiting at all_reduce")));
    comm.abort(error.what());
  }
}

TEST_P(Slow, ARankThatMakesNoneIsNot) { expect_all_pass("gives_up_at_the_timeout"); }

// Works that nobody waits for, in order and in several groups.
RANK_PROGRAM(begins_and_does_not_wait) {
  const auto world = testing_support::init_on_nodes(context, kTimeout);
  auto& comm = world->communicator();
  const auto group = comm.split(context.rank % 2);
  comm.barrier();
  if (context.rank == slow_rank()) be_slow(*world, /*beats=*/true);
  std::vector<at::Tensor> tensors;
  std::vector<std::shared_ptr<comm::Work>> works;
  for (int i = 0; i < 4; ++i) {
    tensors.push_back(at::full({1000}, i));
    works.push_back(comm.start(comm::calls::all_reduce(tensors.back(), comm::ReduceOp::kSum)));
    works.push_back(group->start(comm::calls::barrier()));
  }
  if (context.rank != slow_rank()) std::this_thread::sleep_for(2 * kTimeout);
  for (const auto& work : works) work->wait();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(tensors[static_cast<size_t>(i)][0].item<int>(), i * context.size);
}

TEST_P(Slow, WorksThatNobodyWaitsForGoOnToo) { expect_all_pass("begins_and_does_not_wait"); }

INSTANTIATE_TEST_SUITE_P(Nodes, Slow,
                         ::testing::Values(Nodes{"gloo", {1, 1}, 0}, Nodes{"gloo", {2, 2}, 3},
                                           Nodes{"hierarchical", {2, 2}, 0},
                                           // Rank 1 carries nothing over the network: it waits for rank 0, which waits.
                                           Nodes{"hierarchical", {2, 1}, 2}),
                         [](const auto& param) {
                           std::string name = param.param.backend;
                           for (const int ranks : param.param.ranks) name += std::to_string(ranks);
                           return name;
                         });

RANK_PROGRAM(sends_to_nobody) {
  auto world = testing_support::init_on_nodes(context, kTimeout);
  world->communicator().barrier();
  if (context.rank == 1) return be_slow(*world, /*beats=*/false);
  const auto sent = world->communicator().isend(at::ones({8}), 1);
  EXPECT_THROW(world->communicator().barrier(), CommError);
}

// Nobody waits for the message, and the world ends all the same.
TEST(SlowPeer, AMessageThatIsNotReceivedEndsAtItsTimeout) {
  for (const auto& rank : Ranks("sends_to_nobody", 2, testing_support::nodes("gloo", {1, 1})).wait()) {
    EXPECT_EQ(rank.exit_code, 0) << rank.output;
  }
}

RANK_PROGRAM(is_paused) {
  const auto world = testing_support::init_on_nodes(context, kTimeout);
  auto& comm = world->communicator();
  comm.barrier();
  if (context.rank == 1) {
    std::this_thread::sleep_for(2 * kTimeout);
    comm.barrier();
    return;
  }
  // What the launcher notes when Ctrl-Z has held up this node's ranks for a minute.
  std::thread launcher([&] {
    std::this_thread::sleep_for(kTimeout / 2);
    world->board().paused_ns.store(60'000'000'000);
  });
  EXPECT_NO_THROW(comm.barrier());
  launcher.join();
}

TEST(SlowPeer, APauseOfANodeDoesNotCount) {
  for (const auto& rank : Ranks("is_paused", 2, testing_support::nodes("gloo", {1, 1})).wait()) {
    EXPECT_EQ(rank.exit_code, 0) << rank.output;
  }
}

}  // namespace
}  // namespace lockstep::network
