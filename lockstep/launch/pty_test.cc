#include "lockstep/launch/pty.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "lockstep/launch/process.h"

namespace lockstep::launch {
namespace {

SpawnRequest shell(const std::string& script) {
  return {.command = {"/bin/sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}, .inherited = {}, .pty = true};
}

// What comes within `ms` milliseconds; `to_end`: all, to the end.
std::string read_for(const Descriptor& from, int ms, bool to_end = false) {
  std::string out;
  char buffer[64 * 1024];
  for (pollfd state{.fd = from.get(), .events = POLLIN, .revents = 0}; poll(&state, 1, ms) == 1;) {
    const ssize_t got = read(from.get(), buffer, sizeof buffer);
    if (got <= 0) break;
    out.append(buffer, static_cast<size_t>(got));
    if (!to_end) break;
  }
  return out;
}

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// grep's standard output is the C library's, which it does not flush.
TEST(Pty, ALineIsThereAsSoonAsItIsPrinted) {
  const Child child(shell("(echo line; sleep 60) | grep line"));
  EXPECT_EQ(read_for(child.out, 5000), "line\n");
  SpawnRequest piped = shell("(echo line; sleep 60) | grep line");
  piped.pty = false;
  const Child other(piped);
  EXPECT_EQ(read_for(other.out, 1000), "") << "to a pipe it is not";
}

TEST(Pty, AKilledProgramLosesNoLine) {
  const Child child(shell("(echo one; echo two; sleep 60) | grep o"));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  child.signal_group(SIGKILL);
  EXPECT_EQ(read_for(child.out, 5000, /*to_end=*/true), "one\ntwo\n");
}

TEST(Pty, FourMegabytesArriveWholeAndExact) {
  const std::string path = testing::TempDir() + "/pty-bytes";
  const Child child(shell("head -c 4194304 /dev/urandom | tee " + path));
  const std::string got = read_for(child.out, 20000, /*to_end=*/true);
  EXPECT_EQ(got.size(), size_t{4} << 20);
  EXPECT_TRUE(got == content_of(path));
}

TEST(Pty, BytesThatTerminalsKnowAreBytes) {
  const Child child(shell(R"(printf '\003\004\021\023\032\034\177\377\000\r\n\t\010x')"));
  EXPECT_EQ(read_for(child.out, 5000, /*to_end=*/true),
            std::string("\003\004\021\023\032\034\177\377\000\r\n\t\010x", 14));
}

TEST(Pty, ErrorsStayApart) {
  const Child child(shell("echo out; echo err >&2; test -t 1 && ! test -t 2 && ! test -t 0 && echo as meant"));
  EXPECT_EQ(read_for(child.out, 5000, /*to_end=*/true), "out\nas meant\n");
  EXPECT_EQ(read_for(child.err, 5000, /*to_end=*/true), "err\n");
}

// Ctrl-C comes from the launcher's own terminal, if it has one.
TEST(Pty, IsNobodysControllingTerminal) {
  const auto terminal_in = [](const std::string& stat) {
    std::istringstream fields(stat.substr(stat.rfind(')') + 2));
    std::string skipped, terminal;
    fields >> skipped >> skipped >> skipped >> skipped >> terminal;
    return terminal;
  };
  const Child child(shell("cat /proc/self/stat"));
  const std::string stat = read_for(child.out, 5000, /*to_end=*/true);
  EXPECT_EQ(terminal_in(stat), terminal_in(content_of("/proc/self/stat"))) << stat;
  // A session leader without a terminal gets the first that it opens, unless it says that it wants none.
  const pid_t leader = fork();
  if (leader == 0) {
    if (setsid() < 0) _exit(1);
    const auto pty = open_pty(132);
    _exit(pty.has_value() && tcgetsid(pty->slave.get()) < 0 && open("/dev/tty", O_RDWR) < 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(leader, &status, 0), leader);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep::launch
