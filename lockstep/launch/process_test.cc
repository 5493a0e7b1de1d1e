#include "lockstep/launch/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/launch/testing/alive.h"

namespace lockstep::launch {
namespace {

SpawnRequest shell(const std::string& script) {
  return {.command = {"/bin/sh", "-c", script}, .environment = {}, .inherited = {}};
}

ExitStatus wait_for(const Child& child) {
  pollfd state{.fd = child.pidfd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&state, 1, 10000), 1);
  const auto status = child.ended();
  EXPECT_TRUE(status.has_value());
  return status.value_or(ExitStatus{.code = -1});
}

std::string read_all(const Descriptor& pipe) {
  std::string out;
  char buffer[4096];
  for (pollfd state{.fd = pipe.get(), .events = POLLIN, .revents = 0}; poll(&state, 1, 5000) == 1;) {
    const ssize_t got = read(pipe.get(), buffer, sizeof buffer);
    if (got <= 0) break;
    out.append(buffer, static_cast<size_t>(got));
  }
  return out;
}

TEST(Child, PassesOutputEnvironmentAndCode) {
  SpawnRequest request = shell("echo out $NAME; echo err >&2; exit 7");
  request.environment = {"NAME=value"};
  const Child child(request);
  EXPECT_EQ(read_all(child.out), "out value\n");
  EXPECT_EQ(read_all(child.err), "err\n");
  const ExitStatus status = wait_for(child);
  EXPECT_EQ(status.exit_code(), 7);
  EXPECT_EQ(status.text(), "exited with code 7");
  EXPECT_TRUE(child.ended().has_value()) << "asking twice is fine";
}

TEST(Child, MayHaveAnotherNameThanItsFileAndNoPipes) {
  SpawnRequest request = shell("");
  request.command = {"somebody", "-c", "test $0 = somebody"};
  request.program = "/bin/sh";
  request.piped = false;
  const Child child(request);
  EXPECT_FALSE(child.out || child.err);
  EXPECT_EQ(wait_for(child).exit_code(), 0);
}

TEST(Child, RunsOnTheCpusThatItIsGiven) {
  cpu_set_t own;
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) last = CPU_ISSET(cpu, &own) ? cpu : last;
  SpawnRequest request =
      shell("while read -r name value; do [ $name != Cpus_allowed_list: ] || echo $value; done </proc/self/status");
  request.cpus = {last};
  const Child child(request);
  EXPECT_EQ(read_all(child.out), cat(last, '\n'));
  EXPECT_EQ(wait_for(child).exit_code(), 0);
  request.cpus = {100000};
  EXPECT_THAT(testing_support::refusal<IoError>([&] { Child refused(request); }),
              testing::HasSubstr("to CPUs 100000: "));
}

TEST(Child, NamesTheSignalThatKilledIt) {
  const Child child(shell("kill -9 $$"));
  const ExitStatus status = wait_for(child);
  EXPECT_EQ(status.exit_code(), 137);
  EXPECT_EQ(status.text(), "was killed by SIGKILL");
  EXPECT_FALSE(status.ok());
}

TEST(Child, WhoeverElseWaitedForItLeavesALostStatus) {
  const Child child(shell("exit 3"));
  EXPECT_EQ(waitpid(-1, nullptr, 0), child.pid());  // as a host program's own loop may do
  const ExitStatus status = wait_for(child);
  EXPECT_TRUE(status.lost);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.text(), testing::HasSubstr("took its exit status"));
}

// The kernel gives the number of a child that somebody has waited for to another process: here at once, by our wish.
TEST(Child, AnotherProcessOfItsNumberIsLeftAlone) {
  const Child child(shell("exit 3"));
  const pid_t number = child.pid();
  ASSERT_EQ(waitpid(number, nullptr, 0), number);
  clone_args wish{};
  wish.exit_signal = SIGCHLD;
  wish.set_tid = reinterpret_cast<uint64_t>(&number);
  wish.set_tid_size = 1;
  const long other = syscall(SYS_clone3, &wish, sizeof wish);
  if (other == 0) {
    setpgid(0, 0);
    while (true) pause();
  }
  if (other < 0) GTEST_SKIP() << "only root can choose a process's number (errno " << errno << ")";
  ASSERT_EQ(other, number);
  setpgid(number, number);
  child.signal_group(SIGKILL);
  EXPECT_EQ(waitpid(number, nullptr, WNOHANG), 0) << "it was killed";
  kill(number, SIGKILL);
  EXPECT_EQ(waitpid(number, nullptr, 0), number);
}

TEST(Child, AProgramThatIgnoresSigchldGetsALostStatusAndNoSpin) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  {
    const Child child(shell("exit 0"));
    EXPECT_TRUE(wait_for(child).lost);
  }
  ::signal(SIGCHLD, before);
}

TEST(Child, GetsTheInheritedDescriptorsAndNoOthers) {
  const Descriptor given = create_memfd("given", 1), kept = create_memfd("kept", 1);
  SpawnRequest request =
      shell(cat("[ -e /proc/self/fd/", given.get(), " ] && [ ! -e /proc/self/fd/", kept.get(), " ]"));
  request.inherited = {given.get()};
  const Child child(request);
  EXPECT_EQ(wait_for(child).exit_code(), 0);
  EXPECT_TRUE(fcntl(given.get(), F_GETFD) & FD_CLOEXEC) << "the parent's own copy stays as it was";
}

TEST(Child, StartsWithPlainSignalsInItsOwnGroup) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  const Child child(shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; kill -TERM $$; sleep 9"));
  EXPECT_EQ(read_all(child.out), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  EXPECT_EQ(wait_for(child).signal, SIGTERM);
  EXPECT_EQ(getpgid(child.pid()), child.pid());
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST(Child, ItsOwnersEndIsItsEndAndItsChildrens) {
  int grandchild = 0;
  {
    const Child child(shell("sleep 100 & echo $!; wait"));
    char line[32] = {};
    pollfd state{.fd = child.out.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&state, 1, 5000), 1);
    ASSERT_GT(read(child.out.get(), line, sizeof line - 1), 0);
    grandchild = std::stoi(line);
    EXPECT_TRUE(alive(grandchild));
  }
  EXPECT_TRUE(gone_within({grandchild}, 1));
}

TEST(Child, WhatCantBeRunIsAnError) {
  EXPECT_THROW(Child({.command = {"/no/such/program"}, .environment = {}, .inherited = {}}), ConfigError);
  EXPECT_THROW(Child({.command = {"/etc/passwd"}, .environment = {}, .inherited = {}}), ConfigError);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no remains are left";
}

TEST(FindProgram, LooksInPath) {
  EXPECT_THAT(find_program("sh"), testing::EndsWith("/sh"));
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  EXPECT_THROW(find_program("no-such-program-anywhere"), ConfigError);
  EXPECT_THROW(find_program("./no-such-program"), ConfigError);
  EXPECT_THROW(find_program("/etc/passwd"), ConfigError);
  EXPECT_THROW(find_program("/tmp"), ConfigError);
  EXPECT_THROW(find_program("."), ConfigError) << "a folder of each folder of PATH";
}

}  // namespace
}  // namespace lockstep::launch
