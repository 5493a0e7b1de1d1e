// The web page of a run: while it trains, and afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "endless_run.h"
#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "runs.h"
#include "support/http.h"
#include "support/ports.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::ask;

// The port of "dashboard: http://127.0.0.1:7007/"; 0 if it was not said in time.
int port_said(const Program& program) {
  const std::string begin = "http://127.0.0.1:";
  std::string said;
  const auto is_said = [&] {
    said = program.err() + program.out();
    const size_t at = said.find(begin);
    return at != std::string::npos && said.find('/', at + begin.size()) != std::string::npos;
  };
  return eventually(is_said) ? std::stoi(said.substr(said.find(begin) + begin.size())) : 0;
}

bool shows(int port, const std::string& what) {
  return eventually([&] { return ask(port, "GET /content").find(what) != std::string::npos; });
}

void expect_stopped(Program& program, int port) {
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, kExitStoppedOnRequest) << result.err;
  EXPECT_EQ(ask(port, "GET /"), "");
  EXPECT_TRUE(program.all_gone(std::chrono::seconds(2)));
}

TEST(Dashboard, OfARunUnderWayIsServedUntilItEnds) {
  const TempDir dir;
  const int port = free_port();
  Program run(
      lockstep_command(train_words({"--nproc", "2", "--out", dir / "run", cat("--dashboard=", port)}) + kEndless));
  ASSERT_EQ(port_said(run), port) << run.err();
  EXPECT_TRUE(shows(port, "<figcaption>Loss"));
  EXPECT_THAT(ask(port, "GET /"), HasSubstr("under way"));
  run.signal(SIGTERM);
  expect_stopped(run, port);
}

TEST(Dashboard, GoesOnOverARestart) {
  const TempDir dir;
  Program run(lockstep_command(
      train_words({"--nproc", "2", "--out", dir / "run", "--dashboard", "--max-restarts", "3"}) + kEndless));
  const int port = port_said(run);
  ASSERT_TRUE(shows(port, "<figcaption>Loss")) << run.err();
  signal_to(worker_of(run, 1), SIGKILL);
  EXPECT_TRUE(shows(port, "was killed by SIGKILL"));
  EXPECT_TRUE(
      eventually([&] { return read_file(dir / "run/logs/rank0.log").find("restart 1: ") != std::string::npos; }));
  run.signal(SIGTERM);
  expect_stopped(run, port);
}

TEST(Dashboard, OfARunInTheBackgroundIsToldThere) {
  const TempDir dir;
  Program run(
      lockstep_command(train_words({"--nproc", "2", "--out", dir / "run", "--dashboard", "--detach"}) + kEndless));
  const int port = port_said(run);
  EXPECT_EQ(run.wait().exit_code, 0);
  EXPECT_TRUE(shows(port, "<figcaption>Loss"));
  EXPECT_EQ(lockstep({"stop", dir / "run"}).exit_code, 0);
  EXPECT_EQ(ask(port, "GET /"), "");
}

// Under another launcher, and of several nodes, the first rank serves it.
TEST(Dashboard, OfRanksThatOthersHaveStartedIsTheFirstOnes) {
  const TempDir dir;
  Program run(lockstep_command(Words{"launch", "--nproc", "2", bin_folder() + "/lockstep-worker"} +
                               train_words({"--out", dir / "run", "--dashboard"}) + kEndless));
  const int port = port_said(run);
  ASSERT_NE(port, 0) << run.err();
  EXPECT_TRUE(shows(port, "<figcaption>Loss"));
  run.signal(SIGTERM);
  expect_stopped(run, port);
}

TEST(Dashboard, IsThereForARecipeOfOnesOwn) {
  for (const char* nproc : {"1", "2"}) {
    const TempDir dir;
    Program run({.command = Words{bin_folder() + "/example_own_recipe", "train", "spiral", "--lanes", "2", "--threads",
                                  "1", "--nproc", nproc, "--out", dir / "run", "--dashboard"} +
                            kEndless});
    const int port = port_said(run);
    ASSERT_NE(port, 0) << run.err();
    EXPECT_TRUE(shows(port, "<figcaption>Loss"));
    EXPECT_THAT(ask(port, "GET /content"), HasSubstr("recipe <b>spiral</b>"));
    run.signal(SIGTERM);
    expect_stopped(run, port);
  }
}

TEST(Dashboard, OfAnEndedRunIsServedUntilCtrlC) {
  Program dash(lockstep_command({"dash", finished_run()}));
  const int port = port_said(dash);
  ASSERT_NE(port, 0) << dash.err();
  EXPECT_THAT(ask(port, "GET /"), HasSubstr("finished"));
  dash.signal(SIGINT);
  EXPECT_EQ(dash.wait().exit_code, 0);
}

TEST(Dashboard, IsWrittenToAFile) {
  const TempDir dir;
  const auto result = lockstep({"dash", finished_run(), "--out", dir / "page.html"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_file(dir / "page.html"), HasSubstr("<figcaption>Loss"));
  EXPECT_THAT(read_file(dir / "page.html"), Not(HasSubstr("<script")));
}

void expect_mistake(const Words& words, const std::string& what, int code = ConfigError::kExitCode) {
  expect_one_line(lockstep(words), code, what);
}

TEST(Dashboard, MistakesAreOneLine) {
  const TempDir dir;
  const testing_support::ListeningPort taken;
  const std::string port = std::to_string(taken.port());
  expect_mistake({"dash"}, "RUN");
  expect_mistake({"dash", dir / "none"}, "none");
  expect_mistake({"dash", finished_run(), "--port", port}, cat("127.0.0.1:", port, ": Address already in use"));
  expect_mistake({"dash", finished_run(), "--port", "70000"}, "--port 70000: ");
  expect_mistake({"dash", finished_run(), "--host", "192.0.2.1"}, "choose another host or port");
  expect_mistake({"dash", finished_run(), "--out", dir / "page.html", "--port", "7007"}, "leave out --port");
  expect_mistake({"dash", finished_run(), "--out", dir / "none/page.html"}, "can't be written: No such file",
                 IoError::kExitCode);
  expect_mistake(train_words({"--out", dir / "run", "--dashboard=" + port}), "--dashboard: the dashboard can't listen");
  EXPECT_FALSE(std::filesystem::exists(dir / "run"));
}

}  // namespace
}  // namespace lockstep::e2e
