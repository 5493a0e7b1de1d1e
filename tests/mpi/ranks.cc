// One rank of a world that mpirun starts; all of them run the conformance checks. Arguments: the backend (default:
// mpi), and "circle" for ranks that all send before they receive instead, which ends them.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/comm/testing/conformance.h"
#include "lockstep/world/world.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  try {
    const auto world = lockstep::init({.backend = argc > 1 ? argv[1] : "mpi"});
    const char* meant = std::getenv("LOCKSTEP_TEST_RANKS");
    EXPECT_EQ(std::to_string(world->size()), meant == nullptr ? "no LOCKSTEP_TEST_RANKS" : meant);
    if (argc > 2 && argv[2] == std::string("circle")) {
      world->communicator().send(at::ones({8}), (world->rank() + 1) % world->size());
      return 0;
    }
    lockstep::comm::testing::conformance(world->communicator());
    world->communicator().barrier();
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
  return ::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0;
}
