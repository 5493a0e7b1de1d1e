// A rank that fails while another one writes a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/base/process_state.h"
#include "lockstep/launch/testing/launcher_fixture.h"

namespace lockstep::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using LauncherSavingTest = LauncherTest;

constexpr const char* kWaiting =
    "rank 1 was killed by SIGKILL; waiting for rank 0 (saving the checkpoint of step 12), for at most ";

TEST_F(LauncherSavingTest, ARankThatSavesIsLetFinish) {
  const Launcher::Options options = board_worker(3, "save", folder_ + "/go");
  const int code = run(options, [&](pid_t) {
    for (const Stopwatch watch; err().empty() && watch.seconds() < 10;) usleep(2000);
    EXPECT_THAT(err(), StartsWith(kWaiting));
    usleep(1'500'000);  // longer than ranks get that do not save
    std::ofstream(folder_ + "/go") << "on";
  });
  EXPECT_EQ(code, 128 + SIGKILL);
  // Whether the others notice the failure or are stopped first is the scheduler's choice.
  EXPECT_THAT(err(), AllOf(HasSubstr("\nerror: rank 1 (pid "), HasSubstr(") was killed by SIGKILL"),
                           HasSubstr("\n  saved: checkpoint step-000012.pt\n")));
  EXPECT_EQ(content(folder_ + "/go.saved"), "yes");
}

TEST_F(LauncherSavingTest, APauseIsNoTimeThatRanksTookToEnd) {
  Launcher::Options options = board_worker(2, "save", folder_ + "/go");
  options.error_dir = folder_ + "/errors";
  run(options, [&](pid_t front) {
    for (const Stopwatch watch; err().empty() && watch.seconds() < 10;) usleep(2000);
    kill(front, SIGTSTP);
    for (const Stopwatch watch; !process_stopped(front) && watch.seconds() < 5;) usleep(2000);
    usleep(4'000'000);
    kill(front, SIGCONT);
    std::ofstream(folder_ + "/go") << "on";
  });
  const auto report = nlohmann::json::parse(content(folder_ + "/errors/attempt0.json"));
  EXPECT_GT(report["stop_seconds"], 0);
  EXPECT_LT(report["stop_seconds"], 3);
}

TEST_F(LauncherSavingTest, ASaveThatStandsStillIsStopped) {
  Launcher::Options options = board_worker(2, "save", folder_ + "/go");
  options.save_patience_ns = 5'000'000'000;
  EXPECT_EQ(run(options), 128 + SIGKILL);
  EXPECT_THAT(err(), AllOf(StartsWith(kWaiting), HasSubstr("for at most 5 s without progress\nerror: rank 1 (pid "),
                           HasSubstr("\n  others: rank 0 healthy, stopped by the launcher in ")));
}

TEST_F(LauncherSavingTest, WhoAsksTwiceNeedNotWait) {
  const auto taken = [&] { return std::filesystem::exists(folder_ + "/go.asked"); };
  Launcher::Options options = board_worker(2, "save", folder_ + "/go");
  options.log_dir = folder_ + "/logs";
  options.error_dir = folder_ + "/errors";
  const int code = run(options, [&](pid_t front) {
    for (const Stopwatch watch; err().empty() && watch.seconds() < 10;) usleep(2000);
    kill(front, SIGTERM);
    for (const Stopwatch watch; !taken() && watch.seconds() < 10;) usleep(2000);
    usleep(1'200'000);
    kill(front, SIGTERM);
  });
  EXPECT_EQ(code, 128 + SIGTERM);
  EXPECT_THAT(err(), AllOf(StartsWith(kWaiting), HasSubstr("\nerror: rank 1 (pid "),
                           HasSubstr("\n  others: rank 0 healthy, stopped by the launcher in ")));
  EXPECT_THAT(err(), Not(HasSubstr("with a checkpoint")));
  for (const char* const kept : {"/logs/rank1.log", "/errors/attempt0.json"}) {
    EXPECT_THAT(content(folder_ + kept), HasSubstr("was killed by SIGKILL")) << kept;
  }
}

}  // namespace
}  // namespace lockstep::launch
