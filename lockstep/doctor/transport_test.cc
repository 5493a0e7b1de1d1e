#include "lockstep/doctor/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::doctor {
namespace {

const std::string kRows = R"([{"backend":"shm","ranks":2,"bytes":1024,"seconds":2e-6,"algbw_gbps":0.5},
                              {"backend":"shm","ranks":2,"bytes":1048576,"seconds":3e-5,"algbw_gbps":35.5}])";

TEST(Transport, IsTriedByTwoWorkers) {
  const auto shm = self_test("/bin/worker", "shm");
  EXPECT_EQ(shm.processes, 2);
  EXPECT_EQ(shm.command[0], "/bin/worker");
  EXPECT_THAT(shm.command, testing::Contains("--backend=shm"));
  const auto mpi = self_test("/bin/worker", "mpi");
  EXPECT_EQ(mpi.processes, 1);
  EXPECT_THAT(mpi.command, testing::IsSupersetOf({"mpirun", "/bin/worker", "--backend=mpi"}));
}

TEST(Transport, OverNcclNeedsTwoGpus) {
  EXPECT_EQ(missing_for_nccl(0), "no GPU");
  EXPECT_THAT(missing_for_nccl(1), testing::StartsWith("one GPU; NCCL takes one a rank"));
  EXPECT_EQ(missing_for_nccl(2), "");
}

TEST(Transport, ThatWorksIsMeasured) {
  const auto shm = judge("shm", 0, kRows, "");
  EXPECT_EQ(to_string(shm.health), "ok");
  EXPECT_DOUBLE_EQ(shm.microseconds, 2);
  EXPECT_DOUBLE_EQ(shm.gbps, 35.5);
}

TEST(Transport, ThatIsNotThereSaysWhy) {
  const auto gloo = judge("gloo", 2, "", "error: backend gloo: this build does not have it yet; use auto\n  log: x\n");
  EXPECT_EQ(to_string(gloo.health), "not available");
  EXPECT_EQ(gloo.why, "backend gloo: this build does not have it yet; use auto");
}

TEST(Transport, ThatFailsSaysWhy) {
  const auto shm = judge("shm", 69, "", "error: rank 1 (pid 7): rank 0 is gone\n");
  EXPECT_EQ(to_string(shm.health), "failed");
  EXPECT_EQ(shm.why, "rank 1 (pid 7): rank 0 is gone");
  EXPECT_EQ(judge("shm", 139, "", "").why, "ended with exit code 139");
}

TEST(Transport, SilenceAndRubbishAreNoSuccess) {
  for (const char* out : {"", "[]", "null", "[1,2]", R"([{"ranks":2},{}])"}) {
    EXPECT_EQ(judge("shm", 0, out, "").health, Health::kFailed) << out;
  }
  std::string alone = kRows;
  alone.replace(alone.find("\"ranks\":2"), 9, "\"ranks\":1");
  EXPECT_EQ(judge("shm", 0, alone, "").why, "not all ranks took part");
}

}  // namespace
}  // namespace lockstep::doctor
