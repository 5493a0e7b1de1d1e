// One rank of a world that mpirun starts; all of them run the conformance checks. Arguments: the backend (default:
// mpi), and what they do instead: "circle" for ranks that all send before they receive, which ends them; "slow" for a
// rank 0 that makes progress for longer than the timeout, "stuck" for one that makes none, which ends the others.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/testing/conformance.h"
#include "lockstep/world/world.h"

namespace {

// Machines that stand still for a second change nothing.
constexpr std::chrono::milliseconds kShort{2500}, kSlow{4000}, kStuck{30'000};

void wait_for_rank_0(lockstep::World& world, bool beats) {
  world.communicator().barrier();
  for (const lockstep::Deadline end(beats ? kSlow : kStuck); world.rank() == 0 && !end.passed();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (beats) world.self().beat_ns.store(lockstep::monotonic_ns());
  }
  const at::Tensor ones = at::ones({1000});
  lockstep::comm::Call call = lockstep::comm::calls::all_reduce(ones);
  call.timeout = kShort;
  world.communicator().start(call)->wait();
  EXPECT_EQ(ones[999].item<int>(), world.size());
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const std::string act = argc > 2 ? argv[2] : "conform";
  try {
    const bool waits = act == "slow" || act == "stuck";
    const auto world = lockstep::init(
        {.backend = argc > 1 ? argv[1] : "mpi", .heartbeat = std::chrono::milliseconds(waits ? 50 : 500)});
    const char* meant = std::getenv("LOCKSTEP_TEST_RANKS");
    EXPECT_EQ(std::to_string(world->size()), meant == nullptr ? "no LOCKSTEP_TEST_RANKS" : meant);
    if (waits) {
      wait_for_rank_0(*world, act == "slow");
    } else if (act == "circle") {
      world->communicator().send(at::ones({8}), (world->rank() + 1) % world->size());
    } else {
      lockstep::comm::testing::conformance(world->communicator());
      world->communicator().barrier();
    }
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
  return ::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0;
}
