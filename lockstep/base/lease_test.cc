#include "lockstep/base/lease.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep {
namespace {

TEST(Lease, FilesAreReplacedAsLongAsItLasts) {
  static std::atomic<int64_t> until_ns = 0;
  const auto refusal = []() -> std::string {
    try {
      check_lease("run/checkpoints/last.pt");
      return "";
    } catch (const IoError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal(), "") << "without a lease";
  act_by_lease(&until_ns);
  EXPECT_EQ(refusal(), "") << "one without end";
  until_ns = boot_ns() + 3'600'000'000'000;
  EXPECT_EQ(refusal(), "");
  until_ns = boot_ns();
  EXPECT_EQ(refusal(),
            "run/checkpoints/last.pt: not replaced, for this node's launcher has lost its lease and others go on with "
            "the run");
  until_ns = boot_ns() + 3'600'000'000'000;
  EXPECT_EQ(refusal(), "") << "it was renewed";
  act_by_lease(nullptr);
}

TEST(LeaseDeathTest, ARankEndsWithIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto outlive = [] {
    static std::atomic<int64_t> until_ns = 0;
    act_by_lease(&until_ns);
    end_with_lease();
    until_ns = boot_ns() + 300'000'000;
    std::this_thread::sleep_for(std::chrono::seconds(20));
    _exit(0);
  };
  EXPECT_EXIT(outlive(), testing::ExitedWithCode(69), "this node's launcher has lost its lease");
}

}  // namespace
}  // namespace lockstep
