// Ranks that fail, and are started anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/launch/testing/launcher_fixture.h"

namespace lockstep::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using LauncherRestartTest = LauncherTest;

TEST_F(LauncherRestartTest, FailedRanksAreStartedAnewUntilAllSucceed) {
  Launcher::Options options = shell(2,
                                    "echo attempt $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS; "
                                    "[ $TORCHELASTIC_RESTART_COUNT = 2 ] || [ $RANK = 0 ] || exit 3");
  options.max_restarts = 3;
  options.error_dir = folder_ + "/errors";
  options.log_dir = folder_ + "/logs";
  EXPECT_EQ(run(options), 0);
  EXPECT_THAT(err(), AllOf(HasSubstr("next: starts anew by itself (restart 1 of 3)"),
                           HasSubstr("next: starts anew by itself (restart 2 of 3)"), Not(HasSubstr("restart 3"))));
  EXPECT_THAT(content(folder_ + "/logs/rank1.log"), AllOf(HasSubstr("attempt 0 of 3"), HasSubstr("attempt 2 of 3")));
  const auto report = nlohmann::json::parse(content(folder_ + "/errors/attempt1.json"));
  EXPECT_EQ(report.at("restart"), "restart 2 of 3");
  EXPECT_EQ(report.at("exit_code"), 3);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/errors/attempt2.json"));
}

TEST_F(LauncherRestartTest, TheLastAttemptsExitCodeIsTheRuns) {
  Launcher::Options options = shell(1, "exit $((10 + TORCHELASTIC_RESTART_COUNT))");
  options.max_restarts = 2;
  EXPECT_EQ(run(options), 12);
  EXPECT_THAT(err(), HasSubstr("restarts: all 2 are used up"));
}

TEST_F(LauncherRestartTest, EachAttemptHasAPortOfItsOwn) {
  Launcher::Options options =
      shell(2, "echo $MASTER_PORT >>$FOLDER/ports; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || { sleep 0.2; exit 1; }");
  options.max_restarts = 1;
  EXPECT_EQ(run(options), 0);
  std::ifstream file(folder_ + "/ports");
  const std::vector<std::string> ports{std::istream_iterator<std::string>(file), {}};
  ASSERT_EQ(ports.size(), 4u);
  EXPECT_EQ(ports[0], ports[1]);
  EXPECT_EQ(ports[2], ports[3]);
  EXPECT_NE(ports[0], ports[2]);
}

TEST_F(LauncherRestartTest, AFurtherAttemptMayHaveAnotherCommand) {
  Launcher::Options options = board_worker(2, "step");
  options.max_restarts = 1;
  options.command_again = [](bool trained) {
    return std::vector<std::string>{"/bin/sh", "-c", trained ? "echo goes on" : "echo begins"};
  };
  EXPECT_EQ(run(options), 0);
  EXPECT_THAT(out(), HasSubstr("goes on"));
  EXPECT_THAT(err(), HasSubstr("next: resumes by itself (restart 1 of 1)"));
}

TEST_F(LauncherRestartTest, RanksThatKeepFailingBecomeFewer) {
  Launcher::Options options = shell(4, "[ $WORLD_SIZE -lt 4 ] || { sleep 0.1; exit 5; }; echo $RANK of $WORLD_SIZE");
  options.max_restarts = 5;
  options.own_workers = true;
  options.fewer = [](int ranks) { return ranks / 2; };
  EXPECT_EQ(run(options), 0);
  EXPECT_THAT(err(), AllOf(HasSubstr("(restart 1 of 5)"), HasSubstr("(restart 2 of 5, with 2 ranks in place of 4)")));
  EXPECT_THAT(out(), HasSubstr("0 of 2\n"));
}

TEST_F(LauncherRestartTest, ARunThatWasAskedToStopIsNotStartedAnew) {
  Launcher::Options options = shell(1,
                                    "echo $$ >$FOLDER/pids/$TORCHELASTIC_RESTART_COUNT; "
                                    "until [ -e $FOLDER/asked ]; do sleep 0.05; done; exit 4");
  options.max_restarts = 5;
  const int code = run(options, [&](pid_t front) {
    pids(1);
    kill(front, SIGTERM);  // which only the board tells, and this rank does not read it
    while (err().find("stopping after this step") == std::string::npos) usleep(2000);
    std::ofstream(folder_ + "/asked") << "yes";
  });
  EXPECT_EQ(code, 4);
  EXPECT_THAT(err(), HasSubstr("restarts: none: the run was asked to stop"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/pids/1"));
}

}  // namespace
}  // namespace lockstep::launch
