#include "lockstep/rendezvous/give_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "lockstep/base/env.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/world/world.h"
#include "support/ranks.h"

namespace lockstep::rendezvous {
namespace {

using testing::HasSubstr;
using testing_support::RankResult;
using testing_support::Ranks;

// Expects the exit code of every rank, and its output.
void expect_all(const std::vector<RankResult>& results, int exit_code, const testing::Matcher<std::string>& output) {
  for (size_t rank = 0; rank < results.size(); ++rank) {
    EXPECT_EQ(results[rank].exit_code, exit_code) << "rank " << rank << ": " << results[rank].output;
    EXPECT_THAT(results[rank].output, output) << "rank " << rank;
  }
}

// argument: "<rank that gives up> <backend> <rendezvous>". The last rank comes late.
RANK_PROGRAM(one_gives_up) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  std::istringstream in(context.argument);
  int who = -1;
  std::string backend, address;
  in >> who >> backend >> address;
  if (context.rank == context.size - 1) usleep(700'000);
  if (context.rank == who) {
    const Place place = find_place({.rank = context.rank, .size = context.size, .init_method = address},
                                   [](const char* name) { return env(name); });
    const ConfigError error("--rubbish: no such option");
    give_up(place, error);
    throw ConfigError("rank ", context.rank, ": ", error.what());
  }
  init({.backend = backend, .rank = context.rank, .world_size = context.size, .init_method = address});
  ADD_FAILURE() << "no error";
}

TEST(GiveUp, TellsAll) {
  for (const char* backend : {"shm", "gloo"}) {
    for (const int who : {0, 1, 2}) {
      SCOPED_TRACE(cat(backend, ", rank ", who));
      expect_all(Ranks("one_gives_up", 3, cat(who, ' ', backend, ' ', cat("tcp://127.0.0.1:", free_port()))).wait(),
                 ConfigError::kExitCode, HasSubstr(cat("error: rank ", who, ": --rubbish: no such option\n")));
    }
  }
  const std::string path = cat(testing::TempDir(), "give_up.", getpid());
  expect_all(Ranks("one_gives_up", 3, cat("1 shm file://", path)).wait(), ConfigError::kExitCode,
             HasSubstr("error: rank 1: --rubbish: no such option\n"));
  EXPECT_FALSE(std::filesystem::exists(path)) << "nothing is left behind";
}

}  // namespace
}  // namespace lockstep::rendezvous
