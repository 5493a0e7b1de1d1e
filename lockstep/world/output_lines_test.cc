#include "lockstep/world/output_lines.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace lockstep {
namespace {

// The program that the tests below start.
TEST(DISABLED_Program, PrintsALineAndWaits) {
  std::printf("%s\n", writes_lines() ? "a line at once" : "a line later");
  sleep(60);
}

// What that program has written to a pipe when `wanted` has come, or two seconds later.
std::string written_with(const char* setting, const std::string& wanted) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    setenv("LOCKSTEP_OUTPUT", setting, 1);
    execl("/proc/self/exe", "program", "--gtest_filter=DISABLED_Program.*", "--gtest_also_run_disabled_tests", nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (pollfd state{.fd = ends[0], .events = POLLIN, .revents = 0};
       text.find(wanted) == std::string::npos && poll(&state, 1, 2000) == 1;) {
    const ssize_t got = read(ends[0], buffer.data(), buffer.size());
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  return text;
}

TEST(OutputLines, AreThereAtOnceWhereTheLauncherAsksForThem) {
  EXPECT_NE(written_with("lines", "a line at once\n").find("a line at once\n"), std::string::npos);
}

TEST(OutputLines, ElsewhereThePipeIsTheCLibrarys) {
  EXPECT_EQ(written_with("", "a line").find("a line"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
