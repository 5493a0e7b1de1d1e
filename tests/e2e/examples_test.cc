// Examples whose weights do not depend on the number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;

TEST(Examples, TheGanHasTheSameBitsAtAnyWorldSize) {
  const std::string program = bin_folder() + "/example_gan";
  const Result one = Program({.command = {program, "20"}}).wait();
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("step 20: loss "));
  EXPECT_THAT(one.out, HasSubstr("weights "));
  for (const char* ranks : {"2", "4"}) {
    const Result several = lockstep({"launch", "--nproc", ranks, program, "20"});
    EXPECT_EQ(several.exit_code, 0) << several.err;
    EXPECT_EQ(several.out, one.out) << ranks << " ranks";
  }
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  return text.substr(text.rfind('\n', end) + 1);
}

// Waits until a loop has saved a checkpoint of this step.
void wait_for(const std::string& file) {
  for (int i = 0; i < 2000 && !std::filesystem::exists(file); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(std::filesystem::exists(file)) << file;
}

constexpr auto kOwnLoop = "example_own_loo";  // Linux cuts the names of processes to 15 letters

TEST(Examples, ALoopOfOnesOwnIsKilledAndResumedOnOtherRanks) {
  const TempDir dir;
  const std::string program = bin_folder() + "/example_own_loop";
  const Result whole = Program({.command = {program, dir / "whole"}}).wait();
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(last_line(whole.out), ::testing::StartsWith("weights "));
  {
    const Program two(lockstep_command({"launch", "--nproc", "2", program, dir / "run"}));
    wait_for(dir / "run/checkpoints/step-000100.pt");
    const auto ranks = two.processes(kOwnLoop);
    ASSERT_EQ(ranks.size(), 2u);
    kill(ranks[1], SIGKILL);
    two.all_gone(std::chrono::seconds(10));
  }
  {
    const Program four(lockstep_command({"launch", "--nproc", "4", program, dir / "run"}));
    wait_for(dir / "run/checkpoints/step-000250.pt");
    for (const pid_t rank : four.processes(kOwnLoop)) kill(rank, SIGKILL);
  }
  const Result last = lockstep({"launch", "--nproc", "2", program, dir / "run"});
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_THAT(last.out, ::testing::StartsWith("resumed at step "));
  EXPECT_EQ(last_line(last.out), last_line(whole.out));
  const Result longer = Program({.command = {program, dir / "whole", "2000"}}).wait();
  EXPECT_EQ(longer.exit_code, 2);
  EXPECT_THAT(longer.err, ::testing::HasSubstr("t_max was 1000, and is 2000 in this loop"));
}

}  // namespace
}  // namespace lockstep::e2e
