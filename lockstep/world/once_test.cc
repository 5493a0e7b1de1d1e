#include "lockstep/world/once.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/remote_error.h"
#include "lockstep/comm/shm/shm_segment.h"
#include "lockstep/comm/single_communicator.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::expect_ranks_pass;
using testing_support::RankContext;

World world_of(RankContext& context, milliseconds timeout = std::chrono::seconds(30)) {
  return World({.rank = context.rank,
                .size = context.size,
                .local_rank = context.rank,
                .local_size = context.size,
                .launcher = "lockstep"},
               std::move(context.memory), {.backend = context.size == 1 ? "single" : "shm", .timeout = timeout});
}

// Lets the ranks begin together, by memory that the communicator leaves free: how long processes take to start must not
// count.
void start_together(const RankContext& context) {
  constexpr size_t kFree = NodeMemory::kCommBytes - 64;
  static_assert(sizeof(comm::ShmSegment) <= kFree);
  const Mapping memory(context.memory.comm.get());
  auto* const started = memory.at<std::atomic<int>>(kFree);
  started->fetch_add(1);
  while (started->load() < context.size) std::this_thread::sleep_for(milliseconds(1));
}

RANK_PROGRAM(prepares_once) {
  start_together(context);
  World world = world_of(context, milliseconds(400));  // the collectives' timeout: shorter than preparing takes
  for (const auto scope : {OnceScope::kWorld, OnceScope::kNode}) {
    int calls = 0;
    const Stopwatch watch;
    once(world, scope, [&] {
      ++calls;
      std::this_thread::sleep_for(milliseconds(600));
    });
    EXPECT_EQ(calls, context.rank == 0 ? 1 : 0);
    EXPECT_GE(watch.seconds(), 0.5) << "all wait";
  }
}

TEST(Once, OneRankPreparesWhileTheOthersWait) { expect_ranks_pass("prepares_once", 2); }

RANK_PROGRAM(prepares_on_some) {
  World world = world_of(context);
  int calls = 0;
  once(world, std::vector{1, 2}, [&] { ++calls; });
  once(world, std::vector<int>{}, [&] { ++calls; });
  EXPECT_EQ(calls, context.rank == 0 ? 0 : 1);
  try {
    once(world, std::vector{1, 2}, [&] { throw IoError("disk ", context.rank); });
    ADD_FAILURE() << "no error";
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(), std::string("rank 1: disk 1"));
  }
}

TEST(Once, TheRanksThatAreNamedPrepare) { expect_ranks_pass("prepares_on_some", 3); }

template <typename Expected, typename Thrown>
void expect_on_all(World& world, const Thrown& thrown, const std::string& line) {
  try {
    once(world, OnceScope::kWorld, [&] { throw thrown; });
    ADD_FAILURE() << "no error";
  } catch (const Expected& error) {
    EXPECT_EQ(error.what(), line);
  }
}

RANK_PROGRAM(preparing_fails) {
  World world = world_of(context);
  expect_on_all<DataError>(world, DataError("images.gz: byte 7: damaged"), "rank 0: images.gz: byte 7: damaged");
  expect_on_all<IoError>(world, IoError("disk full"), "rank 0: disk full");
  expect_on_all<BugError>(world, std::runtime_error("surprise"), "rank 0: surprise");
  expect_on_all<BugError>(world, 5, "rank 0: an exception that is none of the standard library's");
  bool prepared = false;
  once(world, OnceScope::kWorld, [&] { prepared = true; });  // and the ranks are still together
  EXPECT_EQ(prepared, context.rank == 0);
}

TEST(Once, AFailureReachesAllWithItsType) { expect_ranks_pass("preparing_fails", 3); }

RANK_PROGRAM(preparing_takes_too_long) {
  start_together(context);
  World world = world_of(context);
  const auto late = [] { std::this_thread::sleep_for(milliseconds(700)); };
  if (context.rank == 0) return late();
  try {
    once(
        world, OnceScope::kWorld, [] {}, milliseconds(300));
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("once: what rank 0 prepares: waited 0.3 s for rank 0"));
  }
  late();  // nobody is to be found dead
}

TEST(Once, HasATimeoutOfItsOwn) { expect_ranks_pass("preparing_takes_too_long", 2); }

// The one that prepares has the usual timeout for those that don't come.
RANK_PROGRAM(prepared_for_nobody) {
  start_together(context);
  World world = world_of(context, milliseconds(300));
  const auto late = [] { std::this_thread::sleep_for(milliseconds(700)); };
  if (context.rank == 1) return late();
  try {
    once(world, OnceScope::kWorld, [] {});
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("once: what rank 0 prepares: waited 0.3 s for rank 1"));
  }
  late();
}

TEST(Once, WhoPreparesWaitsAsUsual) { expect_ranks_pass("prepared_for_nobody", 2); }

RANK_PROGRAM(preparing_dies) {
  World world = world_of(context);
  world.communicator().barrier();
  try {
    once(world, OnceScope::kNode, [] { raise(SIGKILL); });
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), StartsWith("rank 0 (pid "));
    EXPECT_THAT(error.what(), HasSubstr("died"));
  }
}

TEST(Once, ADeathIsSeen) {
  const auto results = testing_support::Ranks("preparing_dies", 2).wait();
  EXPECT_EQ(results[0].exit_code, 128 + SIGKILL);
  EXPECT_EQ(results[1].exit_code, 0) << results[1].output;
  EXPECT_LT(results[1].seconds, 20);
}

RANK_PROGRAM(means) {
  World world = world_of(context);
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    at::Tensor mine = at::full({3, 2}, context.rank, dtype);
    mine.requires_grad_(true);
    const at::Tensor mean = reduce_tensor(world.communicator(), mine);
    EXPECT_TRUE(at::equal(mean, at::full({3, 2}, 1.5, dtype))) << dtype;
    EXPECT_FALSE(mean.requires_grad());
    EXPECT_TRUE(at::equal(mine.detach(), at::full({3, 2}, context.rank, dtype))) << "the input is left alone";
  }
  EXPECT_THROW(reduce_tensor(world.communicator(), at::ones({2}, at::kLong)), BugError);
}

TEST(ReduceTensor, IsTheMeanOverRanks) { expect_ranks_pass("means", 4); }

TEST(ReduceTensor, AloneIsACopy) {
  comm::SingleCommunicator comm;
  const at::Tensor mine = at::arange(5, at::kFloat);
  const at::Tensor mean = reduce_tensor(comm, mine);
  EXPECT_TRUE(at::equal(mean, mine));
  EXPECT_NE(mean.const_data_ptr(), mine.const_data_ptr());
}

template <typename E>
void expect_thrown_back() {
  EXPECT_THROW(throw_error(E::kExitCode, "line"), E);
}

TEST(ThrowError, HasTheTypeOfTheExitCode) {
  expect_thrown_back<ConfigError>();
  expect_thrown_back<DataError>();
  expect_thrown_back<CommError>();
  expect_thrown_back<BugError>();
  expect_thrown_back<IoError>();
  expect_thrown_back<DesyncError>();
  try {
    throw_error(99, "line");
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 99);
    EXPECT_STREQ(error.what(), "line");
  }
}

}  // namespace
}  // namespace lockstep
