#include "lockstep/world/world.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/run_main.h"
#include "lockstep/base/testing/refusal.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing_support::expect_ranks_pass;

RANK_PROGRAM(world_of_one) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  const auto world = init();
  EXPECT_EQ(world->rank(), 0);
  EXPECT_EQ(world->size(), 1);
  EXPECT_EQ(world->place().launcher, "none");
  EXPECT_STREQ(world->communicator().backend(), "single");
  EXPECT_TRUE(world->pool().offset_of(at::ones({10}).const_data_ptr(), 40)) << "tensors are born in the pool";
  EXPECT_EQ(world->self().pid.load(), getpid());
  EXPECT_EQ(world->self().state.load(), RankState::kRunning);
  EXPECT_EQ(world->board().local_ranks, 1);
}

TEST(Init, WithoutALauncherIsAWorldOfOne) { expect_ranks_pass("world_of_one", 1); }

RANK_PROGRAM(init_twice) {
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "1", 1);
  const auto world = init();
  unsetenv("LOCKSTEP_NODE_MEMORY");
  try {
    init();
    ADD_FAILURE() << "no error";
  } catch (const BugError& error) {
    EXPECT_THAT(error.what(), HasSubstr("twice"));
  }
}

TEST(Init, IsForOnceAProcess) { expect_ranks_pass("init_twice", 1); }

RANK_PROGRAM(init_again) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  const rendezvous::Place place{.rank = 0, .size = 2, .local_rank = 0, .local_size = 2};
  EXPECT_THROW(World(place, NodeMemory::create(3), {.backend = "shm"}), ConfigError) << "memory of another world";
  EXPECT_THROW(World(place, NodeMemory::create(2), {.backend = "tin cans"}), ConfigError);
  const auto world = init();
  EXPECT_TRUE(world->pool().offset_of(at::ones({10}).const_data_ptr(), 40));
}

TEST(Init, MayBeTriedAgainAfterAnError) { expect_ranks_pass("init_again", 1); }

// Rank 1 lacks an interface, and goes on with another one.
RANK_PROGRAM(init_with_another_interface) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  InitOptions options{.backend = "gloo", .rank = context.rank, .world_size = context.size};
  options.init_method = context.argument;
  if (context.rank == 1) {
    options.interfaces = "none0";
    EXPECT_THROW(init(options), ConfigError);
    options.interfaces = "";
  }
  const auto world = init(options);
  world->communicator().barrier();  // a rank that ends while another one still connects breaks that connection
  EXPECT_EQ(world->size(), context.size);
}

TEST(Init, AMistakeOfOneRankThatItMendsIsNoneOfTheOthers) {
  expect_ranks_pass("init_with_another_interface", 2, cat("tcp://127.0.0.1:", free_port()));
}

RANK_PROGRAM(place_from_the_environment) {
  for (const char* name : {"RANK", "LOCAL_RANK"}) setenv(name, std::to_string(context.rank).c_str(), 1);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) setenv(name, std::to_string(context.size).c_str(), 1);
  const auto world = init();
  EXPECT_EQ(world->rank(), context.rank);
  EXPECT_EQ(world->local_rank(), context.rank);
  EXPECT_EQ(world->size(), context.size);
  EXPECT_EQ(world->place().launcher, "lockstep");
  EXPECT_STREQ(world->communicator().backend(), "shm");
  EXPECT_EQ(&world->self(), &world->board().ranks[static_cast<size_t>(context.rank)]);
  const at::Tensor ones = at::ones({100});
  EXPECT_TRUE(world->communicator().shares(ones));
  world->communicator().all_reduce(ones, comm::ReduceOp::kSum);
  EXPECT_EQ(ones.sum().item<float>(), 100.0f * static_cast<float>(context.size));
}

TEST(Init, UnderOurLauncherTakesItsMemory) { expect_ranks_pass("place_from_the_environment", 3); }

// Two ranks of one node that nobody's launcher watches, as under torchrun.
RANK_PROGRAM(a_rank_of_no_launcher_fails) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  InitOptions options{.backend = "gloo", .rank = context.rank, .world_size = context.size};
  options.init_method = context.argument;
  const auto world = init(options);
  if (context.rank == 1) {
    EXPECT_EQ(run_main([]() -> int { throw DataError("a.gz: damaged"); }), 65);
    return;
  }
  const auto complaint = testing_support::refusal<CommError>([&] { world->communicator().barrier(); });
  EXPECT_THAT(complaint, HasSubstr("failed: a.gz: damaged"));
}

TEST(Init, ARankOfNoLauncherTellsItsNodeWhyItFailed) {
  expect_ranks_pass("a_rank_of_no_launcher_fails", 2, cat("tcp://127.0.0.1:", free_port()));
}

TEST(Init, RefusesWhatItCannotServe) {
  EXPECT_THROW(init({.rank = 0}), ConfigError);
  EXPECT_THROW(init({.init_method = "env"}), ConfigError);
  EXPECT_THROW(init({.backend = "carrier pigeon"}), ConfigError);
  // A plug-in that can't be opened is said at once, though no other rank has come.
  const std::string folder = testing::TempDir() + "plugins." + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/liblockstep_mpi.so") << "no library";
  setenv("LOCKSTEP_PLUGIN_PATH", folder.c_str(), 1);
  const std::string address = cat("tcp://127.0.0.1:", free_port());
  EXPECT_THAT(
      testing_support::refusal([&] { init({.backend = "mpi", .rank = 0, .world_size = 2, .init_method = address}); }),
      HasSubstr("liblockstep_mpi.so can't be opened"));
  unsetenv("LOCKSTEP_PLUGIN_PATH");
  std::filesystem::remove_all(folder);
  EXPECT_THROW(init({.backend = "single", .rank = 0, .world_size = 2, .init_method = "tcp://localhost:1"}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep
