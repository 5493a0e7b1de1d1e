// The launcher and its terminal: Ctrl-Z, the terminal's size, output that goes nowhere or stands still.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "lockstep/base/process_state.h"
#include "lockstep/launch/testing/alive.h"
#include "lockstep/launch/testing/launcher_fixture.h"

namespace lockstep::launch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Options = Launcher::Options;
using LauncherTerminalTest = LauncherTest;

TEST_F(LauncherTerminalTest, CtrlZStopsTheRanksWithTheLauncherAndTheyGoOnWithIt) {
  Options options = shell(2, "echo $$ >$FOLDER/pids/$RANK; while [ ! -e $FOLDER/go ]; do :; done");
  EXPECT_EQ(run(options,
                [&](pid_t front) {
                  const auto all = pids(2);
                  const auto stopped = [&](bool wanted) {
                    return std::all_of(all.begin(), all.end(),
                                       [&](pid_t pid) { return process_stopped(pid) == wanted; });
                  };
                  const auto soon = [](const auto& holds) {
                    for (const Stopwatch watch; !holds() && watch.seconds() < 5;) usleep(2000);
                    return holds();
                  };
                  kill(front, SIGTSTP);
                  EXPECT_TRUE(soon([&] { return process_stopped(front); }));
                  EXPECT_TRUE(soon([&] { return stopped(true); }));
                  kill(front, SIGCONT);
                  EXPECT_TRUE(soon([&] { return stopped(false); }));
                  std::ofstream(folder_ + "/go") << "on";
                }),
            0);
}

TEST_F(LauncherTerminalTest, APauseIsOnTheBoardForThoseThatWait) {
  EXPECT_EQ(run(board_worker(2, "pause"),
                [](pid_t front) {
                  usleep(200'000);
                  kill(front, SIGTSTP);
                  for (const Stopwatch watch; !process_stopped(front) && watch.seconds() < 5;) usleep(2000);
                  kill(front, SIGCONT);
                }),
            0);
}

TEST_F(LauncherTerminalTest, TheTerminalsWidthIsOnTheBoardAndFollowsIt) {
  int primary = -1, secondary = -1;
  winsize size{.ws_row = 24, .ws_col = 120};
  ASSERT_EQ(openpty(&primary, &secondary, nullptr, nullptr, &size), 0);
  const Descriptor master(primary), slave(secondary);
  Options options = board_worker(1, "columns");
  const pid_t front = fork();
  if (front == 0) {
    options.out_fd = options.err_fd = slave.get();
    _exit(Launcher(options).run());
  }
  std::string shown;
  const auto wait_for = [&](const std::string& text) {
    char piece[100];
    while (shown.find(text) == std::string::npos) {
      const ssize_t bytes = read(master.get(), piece, sizeof piece);
      if (bytes <= 0) return;
      shown.append(piece, static_cast<size_t>(bytes));
    }
  };
  wait_for("120\r\n");
  size.ws_col = 50;
  ioctl(master.get(), TIOCSWINSZ, &size);
  kill(front, SIGWINCH);  // from the kernel, if it were the front's own terminal
  wait_for("50\r\n");
  EXPECT_EQ(shown, "120\r\n50\r\n");
  int status = 0;
  waitpid(front, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(LauncherTerminalTest, AProgramsTerminalFollowsTheLaunchers) {
  int primary = -1, secondary = -1;
  winsize size{.ws_row = 24, .ws_col = 120};
  ASSERT_EQ(openpty(&primary, &secondary, nullptr, nullptr, &size), 0);
  const Descriptor master(primary), slave(secondary);
  Options options = shell(1,
                          "trap 'stty size <&1; exit' WINCH; stty size <&1; echo $$ >$FOLDER/pids/$RANK;"
                          "while :; do sleep 0.01; done");
  options.lines_at_once = true;
  const pid_t front = fork();
  if (front == 0) {
    options.out_fd = options.err_fd = slave.get();
    _exit(Launcher(options).run());
  }
  pids(1);
  size.ws_col = 50;
  ioctl(master.get(), TIOCSWINSZ, &size);
  kill(front, SIGWINCH);
  int status = 0;
  waitpid(front, &status, 0);
  char shown[100] = {};
  EXPECT_GT(read(master.get(), shown, sizeof shown - 1), 0);
  EXPECT_STREQ(shown, "24 120\r\n24 50\r\n");
}

// Whatever a program does with its own terminal, and however the launcher ends.
TEST_F(LauncherTerminalTest, TheTerminalIsLeftAsItWas) {
  int primary = -1, secondary = -1;
  ASSERT_EQ(openpty(&primary, &secondary, nullptr, nullptr, nullptr), 0);
  const Descriptor master(primary), slave(secondary);
  termios before{};
  ASSERT_EQ(tcgetattr(slave.get(), &before), 0);
  for (const int end : {0, SIGTERM, SIGKILL}) {
    std::filesystem::remove(folder_ + "/pids/0");
    Options options = shell(1, cat("stty raw -echo <&1; echo $$ >$FOLDER/pids/$RANK; sleep ", end == 0 ? 0 : 100));
    options.lines_at_once = true;
    const pid_t front = fork();
    if (front == 0) {
      options.out_fd = options.err_fd = slave.get();
      _exit(Launcher(options).run());
    }
    pids(1);
    if (end != 0) kill(front, end);
    waitpid(front, nullptr, 0);
    termios after{};
    ASSERT_EQ(tcgetattr(slave.get(), &after), 0);
    EXPECT_EQ(after.c_lflag, before.c_lflag) << end;
    EXPECT_EQ(after.c_iflag, before.c_iflag) << end;
    EXPECT_EQ(after.c_oflag, before.c_oflag) << end;
  }
}

TEST_F(LauncherTerminalTest, OutputThatAFullDiskLosesIsAnErrorOrAWarning) {
  Options options = shell(1, "echo hi");
  options.out_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
  EXPECT_THROW(Launcher(options).run(), IoError);
  options.log_dir = folder_ + "/logs";
  options.err_fd = open((folder_ + "/err").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  EXPECT_EQ(Launcher(options).run(), 0);
  EXPECT_THAT(err(), StartsWith("warning: standard output: can't be written"));
  EXPECT_EQ(content(folder_ + "/logs/rank0.log"), "hi\n");
  close(options.out_fd);
  close(options.err_fd);
}

// As Ctrl-S, or a pager that nobody pages on: the ranks go on, for their logs have all of it.
TEST_F(LauncherTerminalTest, AReaderThatStandsStillDoesNotHoldUpRanksWithLogs) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  Options options = shell(1, "head -c 2000000 /dev/zero | tr '\\0' x | fold -w 99; echo >$FOLDER/pids/done 1");
  options.log_dir = folder_ + "/logs";
  const pid_t front = fork();
  if (front == 0) {
    options.out_fd = writer.get();
    _exit(Launcher(options).run());
  }
  writer = Descriptor();
  pids(1);
  std::string got;
  char buffer[65536];
  for (ssize_t bytes = 1; bytes > 0;) {
    bytes = read(reader.get(), buffer, sizeof buffer);
    if (bytes > 0) got.append(buffer, static_cast<size_t>(bytes));
  }
  waitpid(front, nullptr, 0);
  EXPECT_THAT(got, HasSubstr("of output left out here; the logs have it]"));
  const std::string log = content(folder_ + "/logs/rank0.log");
  EXPECT_EQ(std::count(log.begin(), log.end(), 'x'), 2000000);
}

// A FIFO that nobody reads stands for a network file system that hangs.
TEST_F(LauncherTerminalTest, ALogThatHangsDoesNotHoldUpTheSupervision) {
  const std::string log = folder_ + "/logs/rank0.log";
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  const Descriptor reader(open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Options options = shell(2,
                          "echo $$ >$FOLDER/pids/$RANK; [ $RANK = 0 ] && head -c 1000000 /dev/zero;"
                          "[ $RANK = 1 ] && { sleep 0.5; exit 9; }; sleep 100");
  options.log_dir = folder_ + "/logs";
  EXPECT_EQ(run(options, [&](pid_t) { EXPECT_TRUE(gone_within(pids(2), 3)); }), 9);
}

}  // namespace
}  // namespace lockstep::launch
