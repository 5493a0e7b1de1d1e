#include "lockstep/comm/shm_communicator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "support/ranks.h"

namespace lockstep::comm {
namespace {

using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::RankContext;
using testing_support::Ranks;

// A rank's half of a test: its pool, installed as libtorch's allocator, and its communicator.
struct World {
  explicit World(RankContext& context, std::chrono::milliseconds timeout = std::chrono::seconds(30))
      : board_memory(context.memory.board.get()),
        pool(Pool::install(
            std::make_unique<Pool>(Descriptor(dup(context.memory.pools[static_cast<size_t>(context.rank)].get()))))),
        comm({.rank = context.rank, .size = context.size, .timeout = timeout}, context.memory, *pool,
             Board::attach(board_memory.data())) {}

  Mapping board_memory;
  Pool* pool;
  ShmCommunicator comm;
};

double value(int rank, int i) { return 0.1 * rank + i; }

RANK_PROGRAM(dies_in_a_collective) {
  World world(context);
  world.comm.barrier();
  if (context.rank == 1) raise(SIGKILL);
  Stopwatch watch;
  try {
    world.comm.all_reduce(at::ones({10}), ReduceOp::kSum);
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 (pid "));
    EXPECT_THAT(error.what(), HasSubstr("died"));
    EXPECT_THAT(error.what(), HasSubstr("all_reduce"));
    EXPECT_LT(watch.seconds(), 0.1 + 0.4) << "a dead peer is to be seen within 100 ms (and a busy machine's hiccup)";
  }
}

TEST(ShmCommunicator, ADeadPeerIsNamedWithoutWaiting) {
  const auto results = Ranks("dies_in_a_collective", 3).wait();
  EXPECT_EQ(results[1].exit_code, 128 + SIGKILL);
  for (const int rank : {0, 2})
    EXPECT_EQ(results[static_cast<size_t>(rank)].exit_code, 0) << results[static_cast<size_t>(rank)].output;
}

RANK_PROGRAM(one_is_missing) {
  World world(context, std::chrono::milliseconds(300));
  const auto linger = [] { std::this_thread::sleep_for(std::chrono::seconds(1)); };  // nobody is to be found dead
  if (context.rank == 2) return linger();
  try {
    world.comm.fold({at::ones({10})}, {.label = "bucket 1/1 (w)", .square_sums = {}})->wait();
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("fold of bucket 1/1 (w)"));
    EXPECT_THAT(error.what(), HasSubstr("waited 0.3 s for rank 2;"));
  }
  linger();
}

TEST(ShmCommunicator, ATimeoutNamesWhoIsMissing) { expect_ranks_pass("one_is_missing", 3); }

RANK_PROGRAM(different_calls) {
  World world(context);
  world.comm.barrier();
  try {
    if (context.rank == 1) {
      world.comm.broadcast(at::ones({64}), 0);
    } else {
      world.comm.all_reduce(at::ones({1000}), ReduceOp::kSum);
    }
    ADD_FAILURE() << "no error";
  } catch (const DesyncError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 called broadcast #1 [64] Float from rank 0"));
    EXPECT_THAT(error.what(), HasSubstr("ranks 0, 2-3 called all_reduce #1 [1000] Float sum"));
  }
}

TEST(ShmCommunicator, DifferentCallsAreNamed) { expect_ranks_pass("different_calls", 4); }

RANK_PROGRAM(one_gives_up) {
  World world(context);
  if (context.rank == 0) {
    world.comm.abort("disk full");
    return;
  }
  try {
    world.comm.barrier();
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("gave up: disk full"));
  }
}

TEST(ShmCommunicator, GivingUpReachesAll) { expect_ranks_pass("one_gives_up", 3); }

RANK_PROGRAM(folds_overlap) {
  World world(context);
  std::vector<std::shared_ptr<Work>> works;
  std::vector<at::Tensor> tensors;
  // More folds than the ring has places; ranks publish at different times and never wait in between.
  for (int i = 0; i < 200; ++i) {
    tensors.push_back(at::full({1 + 37 * i}, value(context.rank, i), at::kDouble));
    works.push_back(world.comm.fold({tensors.back()}, {.label = "test", .square_sums = {}}));
    if (i % (3 + context.rank) == 0) world.comm.progress();
  }
  for (auto& work : works) work->wait();
  for (int i = 0; i < 200; ++i) {
    double expected = value(0, i);
    for (int rank = 1; rank < context.size; ++rank) expected += value(rank, i);
    EXPECT_NEAR(tensors[static_cast<size_t>(i)].max().item<double>(), expected, 1e-9);
    EXPECT_EQ(tensors[static_cast<size_t>(i)].min().item<double>(),
              tensors[static_cast<size_t>(i)].max().item<double>());
    EXPECT_TRUE(works[static_cast<size_t>(i)]->done());
  }
}

TEST(ShmCommunicator, ManyFoldsUnderWay) {
  expect_ranks_pass("folds_overlap", 2);
  expect_ranks_pass("folds_overlap", 5);
}

RANK_PROGRAM(dropped_work) {
  World world(context);
  const at::Tensor t = at::ones({5000});
  for (int i = 0; i < 5; ++i) world.comm.fold({t}, {.label = "nobody waits for", .square_sums = {}});
  world.comm.barrier();
  EXPECT_EQ(t[0].item<float>(), std::pow(context.size, 5));
}

TEST(ShmCommunicator, AFoldThatNobodyHoldsIsDone) { expect_ranks_pass("dropped_work", 2); }

RANK_PROGRAM(zero_copy) {
  World world(context);
  const at::Tensor inside = at::full({100000}, 1.0f);
  std::vector<float> outside_memory(100000, 2.0f);
  const at::Tensor outside = at::from_blob(outside_memory.data(), {100000});
  EXPECT_TRUE(world.comm.shares(inside));
  EXPECT_FALSE(world.comm.shares(outside));
  const auto before = world.pool->stats().allocations;
  world.comm.fold({inside}, {.label = "inside", .square_sums = {}})->wait();
  EXPECT_LE(world.pool->stats().allocations - before, 2u) << "the table of offsets, and no copy of the tensor";
  world.comm.fold({outside}, {.label = "outside", .square_sums = {}})->wait();
  EXPECT_EQ(inside.sum().item<float>(), 100000.0f * static_cast<float>(context.size));
  EXPECT_EQ(outside_memory[99999], 2.0f * static_cast<float>(context.size));
}

TEST(ShmCommunicator, TensorsInThePoolAreFoldedWhereTheyLie) { expect_ranks_pass("zero_copy", 2); }

// Ranks may be threads of one process too, each with a pool of its own.
TEST(ShmCommunicator, SixtyFourRanksOnFewCores) {
  constexpr int kRanks = 64;
  NodeMemory memory = NodeMemory::create(kRanks);
  for (auto& pool : memory.pools) pool = create_memfd("small-pool", size_t{64} << 20);  // one process maps 64 × 64
  const Mapping board(memory.board.get());
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      Pool pool(Descriptor(dup(memory.pools[static_cast<size_t>(rank)].get())));
      ShmCommunicator comm({.rank = rank, .size = kRanks}, memory, pool, Board::attach(board.data()));
      for (int i = 0; i < 3; ++i) {
        const at::Tensor sum = at::full({5000}, rank, at::kInt), mean = at::full({3}, rank, at::kDouble);
        comm.all_reduce(sum, ReduceOp::kSum);
        comm.all_reduce(mean, ReduceOp::kMean);
        EXPECT_EQ(sum[4999].item<int>(), 63 * 64 / 2);
        EXPECT_EQ(mean[2].item<double>(), 31.5);
      }
    });
  }
  for (auto& rank : ranks) rank.join();
}

}  // namespace
}  // namespace lockstep::comm
