#include "lockstep/comm/shm/shm_communicator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/shm/testing/threads.h"
#include "lockstep/comm/testing/conformance.h"
#include "support/ranks.h"

namespace lockstep::comm {
namespace {

using ::testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::RankContext;
using testing_support::Ranks;

// A rank's half of a test: its pool, installed as libtorch's allocator, and its communicator.
struct World {
  explicit World(RankContext& context, std::chrono::milliseconds timeout = std::chrono::seconds(30),
                 std::function<void(const std::string&)> warn = {})
      : board_memory(context.memory.board.get()),
        pool(Pool::install(
            std::make_unique<Pool>(Descriptor(dup(context.memory.pools[static_cast<size_t>(context.rank)].get()))))),
        comm({.rank = context.rank, .size = context.size, .timeout = timeout, .warn = std::move(warn)}, context.memory,
             *pool, Board::attach(board_memory.data())) {}

  int pid_of(int rank) { return Board::attach(board_memory.data())->ranks[static_cast<size_t>(rank)].pid.load(); }

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
  World world(context);
  world.comm.barrier();
  const auto linger = [] { std::this_thread::sleep_for(std::chrono::seconds(1)); };  // nobody is to be found dead
  if (context.rank == 2) return linger();
  Call call = calls::fold({at::ones({10})}, {.label = "bucket 1/1 (w)"});
  call.timeout = std::chrono::milliseconds(300);
  try {
    world.comm.start(call)->wait();
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("fold of bucket 1/1 (w)"));
    EXPECT_THAT(error.what(), HasSubstr("waited 0.3 s for rank 2: rank 2 (pid "));
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
  // More folds than the ring has records; ranks publish at different times and never wait in between.
  for (int i = 0; i < 200; ++i) {
    tensors.push_back(at::full({1 + 37 * i}, value(context.rank, i), at::kDouble));
    works.push_back(world.comm.fold({tensors.back()}, {.label = "test"}));
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
  for (int i = 0; i < 5; ++i) world.comm.fold({t}, {.label = "nobody waits for"});
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
  world.comm.fold({inside}, {.label = "inside"})->wait();
  EXPECT_LE(world.pool->stats().allocations - before, 2u) << "the table of offsets, and no copy of the tensor";
  world.comm.fold({outside}, {.label = "outside"})->wait();
  EXPECT_EQ(inside.sum().item<float>(), 100000.0f * static_cast<float>(context.size));
  EXPECT_EQ(outside_memory[99999], 2.0f * static_cast<float>(context.size));
}

TEST(ShmCommunicator, TensorsInThePoolAreFoldedWhereTheyLie) { expect_ranks_pass("zero_copy", 2); }

RANK_PROGRAM(one_is_stopped) {
  std::vector<std::string> warnings;
  World world(context, std::chrono::seconds(30), [&](const std::string& text) { warnings.push_back(text); });
  world.comm.barrier();
  if (context.rank == 1) {
    raise(SIGSTOP);
    return;
  }
  const std::string how =
      cat("rank 1 (pid ", world.pid_of(1), ") is stopped (SIGSTOP; kill -CONT ", world.pid_of(1), ")");
  Call call = calls::all_reduce(at::ones({10}));
  call.timeout = std::chrono::seconds(1);
  try {
    world.comm.start(call)->wait();
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("all_reduce: waited 1 s for rank 1: " + how));
  }
  ASSERT_EQ(warnings.size(), 1u) << "after a tenth";
  EXPECT_EQ(warnings[0], cat("all_reduce: has waited 0.1 s for rank 1: ", how, "; gives up after 1 s (the timeout)"));
  kill(world.pid_of(1), SIGCONT);
}

TEST(ShmCommunicator, AStoppedPeerIsToldFromADeadOne) { expect_ranks_pass("one_is_stopped", 2); }

RANK_PROGRAM(group_messages_name_the_worlds_ranks) {
  World world(context);
  const auto group = world.comm.split(context.rank >= 1 ? 0 : 1);
  world.comm.barrier();
  const auto linger = [] { std::this_thread::sleep_for(std::chrono::seconds(1)); };
  if (context.rank == 0 || context.rank == 3) return linger();
  Call call = calls::barrier();
  call.timeout = std::chrono::milliseconds(300);
  try {
    group->start(call)->wait();
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("for rank 3: rank 3 (pid "));
    EXPECT_THAT(error.what(), ::testing::ContainsRegex(
                                  "is alive, (asleep.*|computing or spinning); see their logs, or raise the timeout"));
  }
  linger();
}

TEST(ShmCommunicator, GroupsNameTheWorldsRanks) { expect_ranks_pass("group_messages_name_the_worlds_ranks", 4); }

// Ranks may be threads of one process too, each with a pool of its own.
TEST(ShmCommunicator, EveryKindWithThreadsAsRanks) {
  testing::NodeOfThreads node(4);
  node.run([](ShmCommunicator& comm) { testing::conformance(comm); });
}

TEST(ShmCommunicator, AFoldOfAnotherMemoryLayoutIsADesync) {
  testing::NodeOfThreads node(2);
  std::atomic<int> found = 0;
  node.run([&](ShmCommunicator& comm) {
    const at::Tensor image = at::ones({2, 3, 4, 4});
    try {
      comm.fold({comm.rank() == 0 ? image : image.contiguous(at::MemoryFormat::ChannelsLast)}, {.label = "w"})->wait();
    } catch (const DesyncError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("memory layout"));
      ++found;
    }
  });
  EXPECT_EQ(found, 2);
}

TEST(ShmCommunicator, TheLongestTimeoutsDoNotOverflow) {
  testing::NodeOfThreads node(2, std::chrono::milliseconds::max());
  node.run([](ShmCommunicator& comm) {
    if (comm.rank() == 1) usleep(200'000);  // the other sleeps in its wait
    const at::Tensor one = at::ones({1});
    comm.all_reduce(one, ReduceOp::kSum);
    EXPECT_TRUE(comm.start(calls::barrier())->wait_for(std::chrono::nanoseconds::max()));
    EXPECT_EQ(one.item<float>(), 2);
  });
}

TEST(ShmCommunicator, SixtyFourRanksOnFewCores) {
  testing::NodeOfThreads node(64);
  node.run([](ShmCommunicator& comm) {
    for (int i = 0; i < 3; ++i) {
      const at::Tensor sum = at::full({5000}, comm.rank(), at::kInt), mean = at::full({3}, comm.rank(), at::kDouble);
      comm.all_reduce(sum, ReduceOp::kSum);
      comm.all_reduce(mean, ReduceOp::kMean);
      EXPECT_EQ(sum[4999].item<int>(), 63 * 64 / 2);
      EXPECT_EQ(mean[2].item<double>(), 31.5);
    }
  });
}

}  // namespace
}  // namespace lockstep::comm
