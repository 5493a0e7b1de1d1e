// A rank that is killed in each of its starts, at the same point of it: the run ends after three restarts, and no start
// hangs or leaves anything behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>

#include "endless_run.h"
#include "etcd_nodes.h"
#include "lockstep/base/testing/long_test.h"

namespace lockstep::e2e {
namespace {

using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kRestarts = 3;

// Points of a start, by what the rank's memory then holds: nothing yet, its libraries, the node's board, what ranks
// share, another rank's pool, and the slots of snapshots, which are laid out after the first step.
constexpr const char* kPoints[] = {"",
                                   "libtorch_cpu.so",
                                   "memfd:lockstep-board",
                                   "memfd:lockstep-comm",
                                   "memfd:lockstep-pool-0",
                                   "memfd:lockstep-snapshots"};

class KilledStart : public testing::TestWithParam<const char*> {
 protected:
  const TempDir dir_;
  const std::string run_ = dir_ / "run";
};

TEST_P(KilledStart, EndsTheRunAfterThreeRestarts) {
  LOCKSTEP_LONG_TEST_IF(std::string(GetParam()).find("memfd") == std::string::npos);
  Program program(lockstep_command(train_words(
      {"--epochs", "1000000", "--nproc", "2", "--max-restarts", std::to_string(kRestarts), "--out", run_})));
  pid_t killed = -1;
  for (int start = 0; start <= kRestarts; ++start) {
    ASSERT_TRUE(kill_at(
        GetParam(), [&] { return worker_of(program, 1); }, killed))
        << start << program.err();
  }
  const Result result = program.wait(seconds(30));
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  // A start that was killed after its first steps has got further.
  EXPECT_THAT(result.err, AnyOf(HasSubstr("restarts: none: 3 attempts in a row got no further than step "),
                                HasSubstr("restarts: all 3 are used up\n")));
  EXPECT_TRUE(program.all_gone(seconds(5)));
}

INSTANTIATE_TEST_SUITE_P(Points, KilledStart, testing::ValuesIn(kPoints));

// One point after the other.
TEST(KilledStartAtEtcd, EndsTheRunOnAllNodesAfterThreeRestarts) {
  EtcdNodes nodes;
  const TempDir dir;
  const Words flags = {"--nnodes=2", "--nproc-per-node=2", "--max-restarts=" + std::to_string(kRestarts)};
  const Words training = disturbed_run(dir / "run", {"--save-every", "1000000epochs"});
  const auto a = nodes.start(flags, training), b = nodes.start(flags, training);
  pid_t killed = -1;
  const auto rank = [&] {
    for (const pid_t pid : b->processes("lockstep-worker")) {
      if (read_file("/proc/" + std::to_string(pid) + "/environ").find("LOCAL_RANK=1") != std::string::npos) return pid;
    }
    return -1;
  };
  for (const char* point : {"", "libtorch_cpu.so", "memfd:lockstep-board", "memfd:lockstep-pool"}) {
    ASSERT_TRUE(kill_at(point, rank, killed)) << point << a->err() << b->err();
  }
  for (const auto& each : {a.get(), b.get()}) {
    const Result result = each->wait(seconds(60));
    EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
    EXPECT_THAT(result.err, HasSubstr("restart 3 of 3"));
    EXPECT_TRUE(each->all_gone(seconds(5)));
  }
}

}  // namespace
}  // namespace lockstep::e2e
