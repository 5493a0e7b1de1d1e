#include "lockstep/launch/launcher.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/launch/pty.h"
#include "lockstep/launch/testing/alive.h"
#include "lockstep/launch/testing/launcher_fixture.h"

namespace lockstep::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Options = Launcher::Options;

// What is written to the terminal until it has all of `wanted`, or ten seconds have gone by.
std::string shown(const Pty& terminal, const std::vector<std::string>& wanted) {
  std::string text;
  std::array<char, 4096> buffer{};
  const auto all_there = [&] {
    return std::all_of(wanted.begin(), wanted.end(),
                       [&text](const std::string& each) { return text.find(each) != std::string::npos; });
  };
  for (pollfd state{.fd = terminal.master.get(), .events = POLLIN, .revents = 0};
       !all_there() && poll(&state, 1, 10'000) == 1;) {
    const ssize_t got = read(terminal.master.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

// grep's standard output is the C library's, which it does not flush.
TEST_F(LauncherTest, OnATerminalLinesOfAnyProgramComeAsTheyArePrintedAndSurviveAKill) {
  Options options = shell(2, "(echo $RANK $TERM $NO_COLOR; sleep 60) | grep dumb");
  const auto terminal = open_pty(80);
  ASSERT_TRUE(terminal.has_value());
  options.out_fd = terminal->slave.get();
  options.lines_at_once = true;
  options.log_dir = folder_ + "/logs";
  options.stop_by = Launcher::StopBy::kSignal;
  const Stopwatch watch;
  const int code = run(options, [&](pid_t front) {
    const std::string text = shown(*terminal, {"0 dumb 1\n", "[rank 1] 1 dumb 1\n"});
    EXPECT_THAT(text, AllOf(HasSubstr("0 dumb 1\n"), HasSubstr("[rank 1] 1 dumb 1\n")));
    kill(front, SIGINT);
    sleep(1);
    kill(front, SIGINT);
  });
  EXPECT_NE(code, 0);
  EXPECT_LT(watch.seconds(), 40);
  EXPECT_EQ(content(folder_ + "/logs/rank0.log").substr(0, 9), "0 dumb 1\n");
}

// A pager, colours and columns are for people who read along.
TEST_F(LauncherTest, AProgramWhoseOutputGoesToAFileHasNoTerminal) {
  Options options = shell(1, "test -t 1 && echo a terminal || echo none, $LOCKSTEP_OUTPUT $PYTHONUNBUFFERED");
  options.lines_at_once = true;
  EXPECT_EQ(run(options), 0);
  EXPECT_EQ(out(), "none, lines 1\n");
}

TEST_F(LauncherTest, RanksKnowTheirPlace) {
  Options options = shell(3,
                          "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $OMP_NUM_THREADS $MASTER_ADDR "
                          "$LOCKSTEP_PROGRESS $LOCKSTEP_NODE_MEMORY");
  options.threads = 5;
  options.log_dir = folder_ + "/logs";
  EXPECT_EQ(run(options), 0);
  EXPECT_THAT(out(), HasSubstr("[rank 2] 2/3 2/3 5 127.0.0.1 plain "));
  EXPECT_THAT(content(folder_ + "/logs/rank0.log"), StartsWith("0/3 0/3 5 127.0.0.1 plain "));
  EXPECT_THAT(content(folder_ + "/logs/rank1.log"), StartsWith("1/3 1/3 "));
  EXPECT_EQ(err(), "");
}

TEST_F(LauncherTest, OneRankHasNoPrefix) {
  EXPECT_EQ(run(shell(1, "echo out; echo err >&2")), 0);
  EXPECT_EQ(out(), "out\n");
  EXPECT_EQ(err(), "err\n");
}

TEST_F(LauncherTest, OneKilledByKill9StopsTheOthersWithinASecond) {
  Options options =
      shell(3, "echo $$ >$FOLDER/pids/$RANK; echo ready; [ $RANK = 1 ] && { sleep 0.1; kill -9 $$; }; sleep 100");
  options.log_dir = folder_ + "/logs";
  options.error_dir = folder_ + "/errors";
  const Stopwatch watch;
  EXPECT_EQ(run(options), 137);
  EXPECT_LT(watch.seconds(), 2);
  EXPECT_TRUE(gone_within(pids(3), 0.1));
  EXPECT_THAT(err(), AllOf(HasSubstr("error: rank 1 (pid "), HasSubstr(") was killed by SIGKILL"),
                           HasSubstr("\n  others: ranks 0, 2 healthy, stopped by the launcher in 0."),
                           HasSubstr("\n  log: " + folder_ + "/logs/rank1.log (last lines below)\n    ready\n")));
  EXPECT_THAT(content(folder_ + "/logs/rank1.log"), HasSubstr("error: rank 1 (pid "));
  const auto report = nlohmann::json::parse(content(folder_ + "/errors/attempt0.json"));
  EXPECT_EQ(report["exit_code"], 137);
  EXPECT_LT(report["stop_seconds"], 1.0);
  run(options);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/errors/attempt1.json"));
}

TEST_F(LauncherTest, ARankThatIgnoresSigtermIsGoneWithinASecondToo) {
  Options options =
      shell(2, "trap '' TERM; echo $$ >$FOLDER/pids/$RANK; [ $RANK = 0 ] && exit 5; while :; do sleep 0.01; done");
  options.error_dir = folder_ + "/errors";
  EXPECT_EQ(run(options), 5);
  EXPECT_TRUE(gone_within(pids(2), 0.1));
  EXPECT_THAT(err(), HasSubstr("exited with code 5"));
  EXPECT_LT(nlohmann::json::parse(content(folder_ + "/errors/attempt0.json"))["stop_seconds"], 1.0);
}

TEST_F(LauncherTest, TheFrontsKill9TakesEveryoneWithIt) {
  std::vector<pid_t> all;
  run(shell(3, "echo $$ >$FOLDER/pids/$RANK; sleep 100 & echo $! >$FOLDER/pids/child$RANK; wait"), [&](pid_t front) {
    all = pids(6);
    EXPECT_TRUE(std::all_of(all.begin(), all.end(), alive));
    kill(front, SIGKILL);
  });
  EXPECT_TRUE(gone_within(all, 1));
}

TEST_F(LauncherTest, ARankThatHangsIsTheCauseThoughTheFirstThatEndsDoesNotKnowIt) {
  EXPECT_EQ(run(board_worker(3, "late")), 76);
  EXPECT_THAT(err(), AllOf(HasSubstr("error: rank 2 (pid"), HasSubstr("hung: ")));
}

TEST_F(LauncherTest, RanksAreEndedFromOutside) {
  Options options = shell(2, "echo $$ >$FOLDER/pids/$RANK; exec sleep 100");
  options.must_end = [] { return MustEnd{.why = "node b is gone"}; };
  const Stopwatch watch;
  run(options, [](pid_t) {});
  EXPECT_LT(watch.seconds(), 30);
  EXPECT_THAT(err(), HasSubstr("ending the ranks of this node: node b is gone"));
}

TEST_F(LauncherTest, AMistakeBeforeTheFirstStepIsOneLine) {
  Options options = board_worker(3, "data");
  options.error_dir = folder_ + "/errors";
  EXPECT_EQ(run(options), 65);
  EXPECT_EQ(err(), "error: rank 0: train.idx: byte 3: not an IDX file\n");
  EXPECT_EQ(content(folder_ + "/plain"), "yes");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/errors"));
}

TEST_F(LauncherTest, AFailureInTrainingIsAReport) {
  Options options = board_worker(3, "step");
  options.resume_command = "lockstep train mnist --resume runs/mnist-1";
  options.log_dir = folder_ + "/logs";
  EXPECT_EQ(run(options), 70);
  EXPECT_THAT(err(), AllOf(StartsWith("error: rank 1 (pid "), HasSubstr(") failed: weights gone astray\n"),
                           HasSubstr("  when: step 7, fold of bucket 1/2 (fc.weight …)\n"),
                           HasSubstr("  others: ranks 0, 2 noticed it and ended\n"),
                           HasSubstr("  saved: checkpoint step-000005.pt\n"),
                           HasSubstr("  next: lockstep train mnist --resume runs/mnist-1\n")));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/plain"));
}

TEST_F(LauncherTest, AStarterThatIgnoresSigchldDoesNotMatter) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  Options options = shell(2, "[ $RANK = 1 ] && exit 3; exit 0");
  const pid_t front = fork();
  if (front == 0) _exit(as_front(std::move(options)));
  ::signal(SIGCHLD, before);
  int status = 0;
  waitpid(front, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_THAT(err(), HasSubstr("exited with code 3"));
}

TEST_F(LauncherTest, StandardOutputCanBeRank0sAlone) {
  Options options = shell(3, "echo '{}' $RANK");
  options.only_rank0_on_stdout = true;
  EXPECT_EQ(run(options), 0);
  EXPECT_EQ(out(), "{} 0\n");
  EXPECT_THAT(err(), AllOf(HasSubstr("[rank 1] {} 1\n"), HasSubstr("[rank 2] {} 2\n")));
}

TEST_F(LauncherTest, AnExitCodeThatIsAResultNeedsNoReport) {
  Options options = shell(1, "echo they differ; exit 1");
  options.answer = 1;
  EXPECT_EQ(run(options), 1);
  EXPECT_EQ(out(), "they differ\n");
  EXPECT_EQ(err(), "");
  options = shell(1, "exit 2");
  options.answer = 1;
  EXPECT_EQ(run(options), 2);
  EXPECT_THAT(err(), HasSubstr("exited with code 2"));
}

TEST_F(LauncherTest, QuietRunsOnlyReport) {
  Options options = shell(2, "echo noise; echo noise >&2; exit 4");
  options.quiet = true;
  EXPECT_EQ(run(options), 4);
  EXPECT_EQ(out(), "");
  EXPECT_THAT(err(), AllOf(StartsWith("error: rank "), Not(HasSubstr("[rank"))));
}

TEST_F(LauncherTest, OddOutputComesThrough) {
  Options options = shell(2, "head -c 1000000 /dev/zero | tr '\\0' x; printf end");
  options.log_dir = folder_ + "/logs";
  EXPECT_EQ(run(options), 0);
  const std::string log = content(folder_ + "/logs/rank1.log");
  EXPECT_EQ(std::count(log.begin(), log.end(), 'x'), 1000000);
  EXPECT_THAT(log, testing::EndsWith("xend\n"));
  EXPECT_THAT(out(), HasSubstr("xxx"));
}

TEST_F(LauncherTest, AStuckReaderDoesNotKeepTheOthersAlive) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  Options options = shell(2, "echo $$ >$FOLDER/pids/$RANK; [ $RANK = 1 ] && { sleep 0.3; exit 9; }; exec yes");
  const pid_t front = fork();
  if (front == 0) {
    options.out_fd = writer.get();
    options.err_fd = open((folder_ + "/err").c_str(), O_WRONLY | O_CREAT, 0600);
    _exit(Launcher(options).run());
  }
  writer = Descriptor();
  EXPECT_TRUE(gone_within(pids(2), 2));
  kill(front, SIGKILL);
  waitpid(front, nullptr, 0);
}

TEST_F(LauncherTest, AReaderThatGoesDoesNotEndTheRun) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  close(ends[0]);
  Options options = shell(1, "echo a; sleep 0.1; echo b; echo done >$FOLDER/done");
  options.out_fd = ends[1];
  EXPECT_EQ(Launcher(options).run(), 0);
  close(ends[1]);
  EXPECT_EQ(content(folder_ + "/done"), "done\n");
}

TEST_F(LauncherTest, SixtyFourRanks) {
  EXPECT_EQ(run(shell(64, "echo $RANK >$FOLDER/pids/$RANK")), 0);
  EXPECT_EQ(pids(64).size(), 64u);
}

TEST_F(LauncherTest, WhatCantBeStartedIsAnErrorAndLeavesNothing) {
  EXPECT_EQ(run({.command = {"/no/such/program"}, .nproc = 2}), 2);
  EXPECT_THAT(err(), HasSubstr("can't run /no/such/program: No such file"));
  const std::string script = folder_ + "/script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  chmod(script.c_str(), 0755);
  EXPECT_EQ(run({.command = {script}, .nproc = 1}), 2);
  EXPECT_THAT(err(), HasSubstr("what its first line (#!) or its header names to run it is not there"));
  std::ofstream(script) << "echo without a first line that says by what\n";
  EXPECT_EQ(run({.command = {script}, .nproc = 1}), 2);
  EXPECT_THAT(err(), HasSubstr("begin it with #!/bin/sh, say, or write its interpreter before it"));
  EXPECT_THROW(Launcher({.command = {"/bin/true"}, .nproc = 65}), ConfigError);
  EXPECT_THROW(Launcher({.command = {"/bin/true"}, .nproc = 0}), ConfigError);
  Options options = shell(2, "true");
  options.log_dir = folder_ + "/none";
  EXPECT_EQ(run(options), 74);
}

TEST_F(LauncherTest, TheBoardCanBeReadAfterwards) {
  Options options = board_worker(2, "step");
  options.quiet = true;
  const Descriptor null(open("/dev/null", O_WRONLY));
  options.err_fd = null.get();
  int first_steps = 0;
  options.on_first_step = [&first_steps] { ++first_steps; };
  Launcher launcher(options);
  EXPECT_EQ(launcher.run(), 70);
  EXPECT_EQ(first_steps, 1);
  EXPECT_EQ(launcher.board().ranks[1].step.load(), 7u);
  EXPECT_EQ(launcher.board().first_step_ns.load(), 1u);
}

}  // namespace
}  // namespace lockstep::launch
