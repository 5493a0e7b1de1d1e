#include "lockstep/launch/guard.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "lockstep/base/board.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

// A process in a group of its own that would sleep for long; a child of this one.
pid_t sleeper() {
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    execl("/bin/sleep", "sleep", "100", nullptr);
    _exit(1);
  }
  setpgid(pid, pid);
  return pid;
}

bool ended_within(pid_t pid, double seconds) {
  for (const Stopwatch watch; watch.seconds() < seconds; usleep(1000)) {
    if (waitpid(pid, nullptr, WNOHANG) == pid) return true;
  }
  return false;
}

TEST(Guard, KillsTheGroupsWhenTheLauncherIsKilled) {
  const pid_t first = sleeper(), second = sleeper();
  const pid_t launcher = fork();
  if (launcher == 0) {
    Guard guard;
    guard.watch(first);
    guard.watch(second);
    kill(getpid(), SIGKILL);
  }
  EXPECT_TRUE(ended_within(launcher, 5));
  EXPECT_TRUE(ended_within(first, 1));
  EXPECT_TRUE(ended_within(second, 1));
}

TEST(Guard, KillsWhatBearsTheMarkInWhateverSession) {
  const std::string mark = run_mark();
  const pid_t marked = fork();
  if (marked == 0) {
    setsid();
    char* const arguments[] = {const_cast<char*>("sleep"), const_cast<char*>("100"), nullptr};
    const std::string long_entry = "LONG=" + std::string(100'000, 'x');
    char* const environment[] = {const_cast<char*>(long_entry.c_str()), const_cast<char*>(mark.c_str()), nullptr};
    execve("/bin/sleep", arguments, environment);
    _exit(1);
  }
  const pid_t other = sleeper();
  usleep(100'000);  // both are sleep by now
  const pid_t launcher = fork();
  if (launcher == 0) {
    const Guard guard(mark);
    kill(getpid(), SIGKILL);
  }
  EXPECT_TRUE(ended_within(launcher, 5));
  EXPECT_TRUE(ended_within(marked, 2));
  EXPECT_FALSE(ended_within(other, 0.1));
  kill(other, SIGKILL);
  EXPECT_TRUE(ended_within(other, 5));
}

// By whoever takes it for the launcher, whose command line it has.
TEST(Guard, ThatIsKilledEndsNobody) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    Guard guard;
    const bool too_early = guard.lost();
    pid_t killed = 0;
    for (const Stopwatch watch; watch.seconds() < 5 && killed == 0; usleep(1000)) {
      std::ifstream children(cat("/proc/self/task/", getpid(), "/children"));
      if (children >> killed) kill(killed, SIGKILL);
    }
    bool lost = false;
    for (const Stopwatch watch; watch.seconds() < 5 && !lost; usleep(1000)) lost = guard.lost();
    guard.watch(getpid());
    _exit(!too_early && lost && !guard.lost() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(launcher, &status, 0), launcher);
  EXPECT_EQ(status, 0);
}

TEST(Guard, KillsNobodyWhenItIsSentHome) {
  const pid_t group = sleeper();
  {
    Guard guard;
    guard.watch(group);
  }
  EXPECT_FALSE(ended_within(group, 0.1));
  kill(group, SIGKILL);
  EXPECT_TRUE(ended_within(group, 5));
}

TEST(Guard, MoreGroupsThanANodeHasRanksAreRefused) {
  Guard guard;
  for (int k = 0; k < kMaxLocalRanks; ++k) guard.watch(1'000'000 + k);
  EXPECT_THROW(guard.watch(2'000'000), BugError);
}

TEST(Guard, ThatIsStoppedGoesHomeAllTheSame) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    {
      Guard guard;
      std::ifstream children(cat("/proc/self/task/", getpid(), "/children"));
      pid_t own = 0;
      children >> own;
      if (own == 0 || kill(own, SIGSTOP) != 0) _exit(1);
    }
    _exit(0);
  }
  int status = -1;
  const Stopwatch watch;
  while (waitpid(launcher, &status, WNOHANG) == 0 && watch.seconds() < 10) usleep(1000);
  EXPECT_EQ(status, 0) << "it waits for a guard that stands still";
  if (status != 0) kill(launcher, SIGKILL);
}

TEST(Guard, LeavesNoProcessBehind) {
  { const Guard guard; }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace lockstep::launch
