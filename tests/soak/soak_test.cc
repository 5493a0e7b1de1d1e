// Jobs of four ranks over shared memory, again and again, one in ten with a rank killed at a random moment: no hang,
// nothing left behind. LOCKSTEP_SOAK_RUNS says how many (default 20), LOCKSTEP_SOAK_SEED which.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "job.h"
#include "leftovers.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/peak_memory.h"
#include "lockstep/world/world.h"
#include "support/ranks.h"

namespace lockstep::soak {
namespace {

using std::chrono::milliseconds;
using testing_support::RankResult;
using testing_support::Ranks;

constexpr int kRanks = 4;
constexpr const char* kMark = "LOCKSTEP_SOAK_MARK";
constexpr const char* kAtLast = "at the last step";
// Whoever dies before it has said its pid is to be seen by the clock alone (or by the launcher, which there is none
// of).
constexpr milliseconds kTimeout{30'000}, kTimeoutAtStart{3'000};

void run_rank(testing_support::RankContext& context, const Plan& plan) {
  Killer killer(plan, context.rank);
  killer.at(-1);
  const rendezvous::Place place{
      .rank = context.rank, .size = context.size, .local_rank = context.rank, .local_size = context.size};
  World world(place, std::move(context.memory),
              {.backend = "shm", .timeout = plan.victim >= 0 && plan.step < 0 ? kTimeoutAtStart : kTimeout});
  Job job(world.communicator(), plan.seed);
  for (int step = 0; step < kSteps; ++step) {
    killer.at(step);
    if (step == kSteps - 1) std::puts(kAtLast), std::fflush(stdout);
    job.step(step);
  }
  killer.at(kSteps);
}

// As in a program, the error goes to the board: whoever misses this rank then passes on why it went.
RANK_PROGRAM(soak_job) {
  const Mapping board(context.memory.board.get());
  try {
    run_rank(context, Plan::decode(context.argument));
  } catch (const Error& error) {
    Board::attach(board.data())->ranks[static_cast<size_t>(context.rank)].fail(error.exit_code(), error.what());
    throw;
  }
}

Plan draw_plan(std::mt19937_64& draw, bool kills) {
  const auto below = [&draw](int end) { return static_cast<int>(draw() % static_cast<uint64_t>(end)); };
  Plan plan{.seed = draw() % 1'000'000};
  if (!kills) return plan;
  plan.victim = below(kRanks);
  const int when = below(4);  // right at the start, near the end, or anywhere
  plan.step = when == 0 ? below(3) - 1 : when == 1 ? kSteps - 2 + below(3) : below(kSteps);
  plan.microseconds = below(2) * below(3000);
  return plan;
}

// A survivor of a killed rank has an error that names a rank, in time; or it was through, if the victim was as well.
void expect_survived(const RankResult& rank, const RankResult& victim, const Plan& plan) {
  const bool late = victim.output.find(kAtLast) != std::string::npos;
  if (late && rank.exit_code == 0) return;
  EXPECT_EQ(rank.exit_code, CommError::kExitCode) << rank.output;
  EXPECT_THAT(rank.output, ::testing::HasSubstr(cat("rank ", plan.victim))) << "it names another";
  const double most = plan.step < 0 ? 2 + std::chrono::duration<double>(kTimeoutAtStart).count() : 2;
  EXPECT_LT(rank.seconds - victim.seconds, most) << rank.output;
}

void run_job(const Plan& plan, int run) {
  const std::string mark = cat(getpid(), '.', run);
  FileIds files;
  {
    Ranks ranks("soak_job", kRanks, plan.encode(), {{kMark, mark}});
    files = files_of(ranks.memory());
    const auto results = ranks.wait(std::chrono::seconds(60));
    for (int rank = 0; rank < kRanks; ++rank) {
      const RankResult& result = results[static_cast<size_t>(rank)];
      if (plan.victim < 0) {
        EXPECT_EQ(result.exit_code, 0) << "rank " << rank << ": " << result.output;
      } else if (rank == plan.victim) {
        EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.output;
      } else {
        expect_survived(result, results[static_cast<size_t>(plan.victim)], plan);
      }
    }
  }
  EXPECT_EQ(leftovers(cat(kMark, '=', mark), files), "");
}

TEST(Soak, JobsEndAndLeaveNothingWhoeverIsKilled) {
  constexpr int kEvery = 10, kWarmUp = 10;
  constexpr int64_t kGrowth = int64_t{8} << 20;
  const auto runs = static_cast<int>(env_int("LOCKSTEP_SOAK_RUNS", 1, 1'000'000).value_or(20));
  const int64_t seed = env_int("LOCKSTEP_SOAK_SEED", 0, 1'000'000'000).value_or(1);
  std::mt19937_64 draw(static_cast<uint64_t>(seed));
  int64_t bytes = 0;
  for (int run = 0; run < runs && !HasFailure(); ++run) {
    const Plan plan = draw_plan(draw, run % kEvery == kEvery / 2);
    SCOPED_TRACE(cat("run ", run, " of LOCKSTEP_SOAK_SEED=", seed, ", plan '", plan.encode(), "'"));
    run_job(plan, run);
    if (run == kWarmUp) bytes = resident_bytes();
  }
  if (runs > kWarmUp && testing_support::kMeasuresMemory)
    EXPECT_LT(resident_bytes() - bytes, kGrowth) << "the test itself grows";
}

}  // namespace
}  // namespace lockstep::soak
