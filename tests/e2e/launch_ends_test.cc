// How `lockstep launch` ends where something is wrong: what it says, what it leaves, and that nobody is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "endless_run.h"
#include "lockstep/base/free_ports.h"
#include "support/ports.h"

namespace lockstep::e2e {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class LaunchEnds : public ::testing::Test {
 protected:
  Words endless(const Words& more = {}) const {
    return Words{bin_folder() + "/lockstep-worker"} + train_words({"--epochs", "1000000", "--out", run_}) + more;
  }
  bool is_training() const {
    return eventually([&] { return steps_logged(run_).size() > 5; }, std::chrono::milliseconds(60'000));
  }
  static nlohmann::json report_in(const std::string& folder) {
    return nlohmann::json::parse(read_file(folder + "/errors/attempt0.json"), nullptr, /*allow_exceptions=*/false);
  }

  const TempDir dir_;
  const std::string run_ = dir_ / "run";
};

TEST_F(LaunchEnds, ANodeThatIsLostEndsTheOthersWith69) {
  const std::string port = std::to_string(free_port());
  const auto node = [&](const std::string& rank) {
    return lockstep_command(Words{"launch", "--nnodes=2", "--node-rank", rank, "--master-addr=127.0.0.1",
                                  "--master-port", port, "--nproc-per-node=1"} +
                            endless());
  };
  Program first(node("0")), second(node("1"));
  ASSERT_TRUE(is_training()) << first.err() << second.err();
  second.signal(SIGKILL);
  const Result result = first.wait(seconds(30));
  EXPECT_EQ(result.exit_code, 69) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1"));
  EXPECT_TRUE(second.all_gone(seconds(10))) << "its ranks end with it";
  EXPECT_EQ(report_in(run_)["rank"], 0) << "in the folder that the ranks have told";
}

TEST_F(LaunchEnds, TheReportIsBesideTheLogs) {
  const Result result = lockstep(
      {"launch", "--nproc=2", "--log-dir", dir_ / "logs", "/bin/sh", "-c", "[ $RANK = 0 ] || exit 3; sleep 9"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  const auto report = report_in(dir_ / "logs");
  EXPECT_EQ(report["rank"], 1);
  EXPECT_EQ(report["exit_code"], 3);
}

// As `python3 -m torch.distributed.elastic…` leaves it.
TEST_F(LaunchEnds, ARecordedTracebackIsShownWhole) {
  const std::string script =
      R"(printf '{"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "line 1\\nline 2\\n"}}}' )"
      R"(>$TORCHELASTIC_ERROR_FILE; exit 1)";
  const Result result =
      lockstep({"launch", "--nproc=1", "--log-dir", dir_ / "logs", "-r", "3", "/bin/sh", "-c", script});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("failed: ValueError: x\n"), HasSubstr("    line 1\n    line 2\n")));
}

TEST_F(LaunchEnds, APortThatIsTakenStartsNothing) {
  const testing_support::ListeningPort taken;
  const std::string port = std::to_string(taken.port());
  const Result result = lockstep({"launch", "--master-port", port, "/usr/bin/touch", dir_ / "started"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, StartsWith("error: --master-port " + port + ": somebody listens on that port"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "started"));
}

TEST_F(LaunchEnds, ThreeRestartsWithoutProgressAreTheLastOnes) {
  Program program(lockstep_command(Words{"launch", "--nproc=2", "--max-restarts=50"} + endless()));
  pid_t killed = -1;
  for (int start = 0; start < 4; ++start) {
    ASSERT_TRUE(kill_at(
        "lockstep-pool", [&] { return worker_of(program, 1); }, killed, seconds(30)))
        << start << program.err();
  }
  const Result result = program.wait(seconds(30));
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_THAT(result.err, HasSubstr("restarts: none: 3 attempts in a row got no further than step "));
}

// Nobody waits for it but the launcher.
TEST_F(LaunchEnds, ARankThatStandsStillIsEndedAsAHang) {
  Program program(lockstep_command(Words{"launch", "--nproc=1", "--timeout=1"} + endless()));
  ASSERT_TRUE(is_training()) << program.err();
  signal_to(program.processes("lockstep-worker").at(0), SIGSTOP);
  const Result result = program.wait(seconds(60));
  EXPECT_EQ(result.exit_code, 76) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("failed: hung: no progress for "), HasSubstr("is stopped (SIGSTOP")));
}

TEST_F(LaunchEnds, RanksThatDoNotStopAreKilledAfterTheGrace) {
  Program program(lockstep_command(
      {"launch", "--nproc=1", "--grace=1", "/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"}));
  ASSERT_TRUE(eventually([&] { return program.processes("sleep").size() == 1; }));
  program.signal(SIGTERM);
  const Result result = program.wait(seconds(30));
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.err, HasSubstr("what did not end within the grace of 1 s was killed"));
  EXPECT_TRUE(program.all_gone(seconds(5)));
}

// RssAnon, and the process that guards its ranks.
TEST_F(LaunchEnds, TheLauncherIsSmall) {
  Program program(lockstep_command({"launch", "--nproc=2", "/bin/sleep", "30"}));
  ASSERT_TRUE(eventually([&] { return program.processes("sleep").size() == 2; }));
  int64_t kilobytes = 0;
  for (const pid_t pid : program.processes("lockstep")) {
    std::istringstream status(read_file("/proc/" + std::to_string(pid) + "/status"));
    for (std::string name; status >> name;) {
      int64_t value = 0;
      if (name == "RssAnon:" && status >> value) kilobytes += value;
    }
  }
  EXPECT_GT(kilobytes, 0);
  EXPECT_LT(kilobytes, 10 * 1024);
  program.signal(SIGTERM);
  program.wait();
}

class SignalPassedOn : public ::testing::TestWithParam<int> {};

TEST_P(SignalPassedOn, ReachesAllRanks) {
  const TempDir dir;
  const std::string script = "trap 'touch " + dir.path() + "/$RANK; exit 0' USR1 QUIT; touch " + dir.path() +
                             "/ready$RANK; while :; do sleep 0.05; done";
  Program program(lockstep_command({"launch", "--nproc=2", "/bin/sh", "-c", script}));
  const auto are_there = [&](const std::string& name) {
    return eventually(
        [&] { return std::filesystem::exists(dir / (name + "0")) && std::filesystem::exists(dir / (name + "1")); });
  };
  ASSERT_TRUE(are_there("ready"));
  program.signal(GetParam());
  EXPECT_TRUE(are_there(""));
  program.wait();
}

// As torchrun ends by it: a program that dies of a passed-on SIGQUIT has not failed, and is not started anew.
TEST(CtrlBackslash, EndsProgramsThatDieOfIt) {
  const TempDir dir;
  const std::string script = "touch " + dir.path() + "/ready$RANK; while :; do sleep 0.05; done";
  Program program(lockstep_command({"launch", "--nproc=2", "--max-restarts=3", "/bin/sh", "-c", script}));
  ASSERT_TRUE(
      eventually([&] { return std::filesystem::exists(dir / "ready0") && std::filesystem::exists(dir / "ready1"); }));
  program.signal(SIGQUIT);
  const Result result = program.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGQUIT);
  EXPECT_EQ(result.err.find("restart"), std::string::npos) << result.err;
}

INSTANTIATE_TEST_SUITE_P(Signals, SignalPassedOn, ::testing::Values(SIGUSR1, SIGQUIT));

}  // namespace
}  // namespace lockstep::e2e
