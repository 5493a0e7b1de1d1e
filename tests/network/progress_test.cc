// Ranks of two nodes that wait for a slow one: beyond the timeout as long as it makes progress, and no longer.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "lockstep/base/board.h"
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

// Of each call that waits for a slow rank. Machines that stand still for a second change nothing.
constexpr milliseconds kTimeout{2500}, kSlow{4000};

std::shared_ptr<World> join(const RankContext& context) {
  return testing_support::init_on_nodes(context, std::chrono::seconds(60), /*heartbeat=*/milliseconds(50));
}

std::shared_ptr<comm::Work> start(comm::Communicator& comm, comm::Call call) {
  call.timeout = kTimeout;
  return comm.start(std::move(call));
}

// As a rank that saves a large checkpoint, for longer than the timeout.
void be_slow(World& world) {
  world.self().doing.set("saving step 7");
  for (const Deadline end(kSlow); !end.passed();) {
    std::this_thread::sleep_for(milliseconds(50));
    world.self().beat_ns.store(monotonic_ns());
  }
  world.self().doing.set("");
}

// The ranks that have given up, on a board of the test's, which all of its nodes see.
class GivenUp {
 public:
  explicit GivenUp(const RankContext& context)
      : rank_(context.rank),
        size_(context.size),
        memory_(context.memory.board.get()),
        board_(Board::attach(memory_.data())) {}
  void add_this() { board_->ranks[static_cast<size_t>(rank_)].step.store(1); }
  bool all_others() const {
    int count = 0;
    for (int rank = 0; rank < size_; ++rank) count += board_->ranks[static_cast<size_t>(rank)].step.load() != 0;
    return count == size_ - 1;
  }

 private:
  int rank_, size_;
  Mapping memory_;
  Board* board_;
};

// As a rank that hangs in a save until the others have given up.
void be_stuck(World& world, const GivenUp& given_up) {
  world.self().doing.set("saving step 7");
  const Deadline end(std::chrono::seconds(40));
  while (!given_up.all_others() && !end.passed()) std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(given_up.all_others());
}

// Which rank is slow, in the environment of the ranks.
int slow_rank() { return static_cast<int>(*env_int("LOCKSTEP_TEST_SLOW", 0, 64)); }

void expect_sum(comm::Communicator& comm) {
  const at::Tensor ones = at::ones({200'000});
  start(comm, comm::calls::all_reduce(ones, comm::ReduceOp::kSum))->wait();
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

class SlowUnwaited : public Slow {};

RANK_PROGRAM(waits_beyond_the_timeout) {
  const auto world = join(context);
  auto& comm = world->communicator();
  comm.barrier();
  if (context.rank == slow_rank()) be_slow(*world);
  expect_sum(comm);
  comm.barrier();
}

TEST_P(Slow, ARankThatMakesProgressIsWaitedForBeyondTheTimeout) { expect_all_pass("waits_beyond_the_timeout"); }

RANK_PROGRAM(gives_up_at_the_timeout) {
  GivenUp given_up(context);
  const auto world = join(context);
  auto& comm = world->communicator();
  comm.barrier();
  if (context.rank == slow_rank()) return be_stuck(*world, given_up);
  try {
    expect_sum(comm);
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    // A rank of the other node may be named in its place: it waits for the slow one, or has given up at the same
    // moment.
    const std::string slow = cat("rank ", slow_rank(), " (");
    EXPECT_THAT(error.what(),
                AnyOf(AllOf(HasSubstr(slow), HasSubstr("is alive, saving step 7")),
                      HasSubstr("is alive, waiting at all_reduce"), HasSubstr("is alive, computing, waits for rank")));
    comm.abort(error.what());
  }
  given_up.add_this();
}

TEST_P(Slow, ARankThatMakesNoneIsNot) { expect_all_pass("gives_up_at_the_timeout"); }

// Works that nobody waits for, in order and in several groups.
RANK_PROGRAM(begins_and_does_not_wait) {
  const auto world = testing_support::init_on_nodes(context, kTimeout);
  auto& comm = world->communicator();
  const auto group = comm.split(context.rank % 2);
  comm.barrier();
  if (context.rank == slow_rank()) be_slow(*world);
  std::vector<at::Tensor> tensors;
  std::vector<std::shared_ptr<comm::Work>> works;
  for (int i = 0; i < 4; ++i) {
    tensors.push_back(at::full({1000}, i));
    works.push_back(start(comm, comm::calls::all_reduce(tensors.back(), comm::ReduceOp::kSum)));
    works.push_back(start(*group, comm::calls::barrier()));
  }
  if (context.rank != slow_rank()) std::this_thread::sleep_for(kSlow);
  for (const auto& work : works) work->wait();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(tensors[static_cast<size_t>(i)][0].item<int>(), i * context.size);
}

TEST_P(SlowUnwaited, WorksThatNobodyWaitsForGoOnToo) { expect_all_pass("begins_and_does_not_wait"); }

std::string name_of(const ::testing::TestParamInfo<Nodes>& param) {
  std::string name = param.param.backend;
  for (const int ranks : param.param.ranks) name += std::to_string(ranks);
  return name;
}

INSTANTIATE_TEST_SUITE_P(Nodes, Slow,
                         ::testing::Values(Nodes{"gloo", {1, 1}, 0}, Nodes{"gloo", {2, 2}, 3},
                                           Nodes{"hierarchical", {2, 2}, 0},
                                           // Rank 1 carries nothing over the network: it waits for rank 0, which waits.
                                           Nodes{"hierarchical", {2, 1}, 2}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Nodes, SlowUnwaited,
                         ::testing::Values(Nodes{"gloo", {2, 2}, 3}, Nodes{"hierarchical", {2, 2}, 0}), name_of);

RANK_PROGRAM(sends_to_nobody) {
  GivenUp given_up(context);
  const auto world = join(context);
  auto& comm = world->communicator();
  comm.barrier();
  if (context.rank == 1) return be_stuck(*world, given_up);
  const auto sent = start(comm, comm::calls::send(at::ones({8}), 1));
  EXPECT_THROW(start(comm, comm::calls::barrier())->wait(), CommError);
  given_up.add_this();
}

// Nobody waits for the message, and the world ends all the same.
TEST(SlowPeer, AMessageThatIsNotReceivedEndsAtItsTimeout) {
  for (const auto& rank : Ranks("sends_to_nobody", 2, testing_support::nodes("gloo", {1, 1})).wait()) {
    EXPECT_EQ(rank.exit_code, 0) << rank.output;
  }
}

RANK_PROGRAM(is_paused) {
  const auto world = join(context);
  auto& comm = world->communicator();
  comm.barrier();
  if (context.rank == 1) {
    std::this_thread::sleep_for(kSlow);
    comm.barrier();
    return;
  }
  const auto work = start(comm, comm::calls::barrier());
  std::this_thread::sleep_for(kTimeout / 2);
  // What the launcher notes when Ctrl-Z has held up this node's ranks for a minute.
  world->board().paused_ns.store(60'000'000'000);
  EXPECT_NO_THROW(work->wait());
}

TEST(SlowPeer, APauseOfANodeDoesNotCount) {
  for (const auto& rank : Ranks("is_paused", 2, testing_support::nodes("gloo", {1, 1})).wait()) {
    EXPECT_EQ(rank.exit_code, 0) << rank.output;
  }
}

}  // namespace
}  // namespace lockstep::network
