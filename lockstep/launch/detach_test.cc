#include "lockstep/launch/detach.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "lockstep/base/log.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/launch/testing/launcher_fixture.h"

namespace lockstep::launch {
namespace {

using testing::HasSubstr;

class Detach : public testing::Test {
 protected:
#if __has_feature(thread_sanitizer)
  void SetUp() override { GTEST_SKIP() << "the thread sanitizer has a thread of its own, and a detached start none"; }
#endif
  // Runs `work` in the background of a process of its own; returns the foreground's exit code.
  int run(const std::function<int(Background&)>& work) {
    const pid_t foreground = fork();
    if (foreground == 0) {
      for (const auto& [name, fd] : {std::pair{"out", STDOUT_FILENO}, {"err", STDERR_FILENO}}) {
        const int file = open((dir_ / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(file, fd);
      }
      _exit(in_background(work));
    }
    int status = 0;
    waitpid(foreground, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string out() { return content(dir_ / "out"); }
  std::string err() { return content(dir_ / "err"); }
  bool eventually_has(const std::string& file, const std::string& text) {
    for (const Stopwatch watch; watch.seconds() < 20; usleep(2000)) {
      if (content(dir_ / file).find(text) != std::string::npos) return true;
    }
    return false;
  }

  testing_support::TempDir dir_;
};

TEST_F(Detach, TheForegroundEndsWhenTheWorkHasBegun) {
  const std::string log = dir_ / "log", done = dir_ / "done";
  EXPECT_EQ(run([&](Background& self) {
              self.write_to(log, "first\n");
              write_all(STDERR_FILENO, "header\n");
              self.begun("has begun\n");
              for (const Stopwatch watch; watch.seconds() < 0.2;) usleep(1000);
              write_all(STDOUT_FILENO, getsid(0) == getpid() ? "a session of its own\n" : "?\n");
              raise(SIGHUP);
              write_all(STDOUT_FILENO, "lives on\n");
              return 3;
            }),
            0);
  EXPECT_EQ(out(), "has begun\n");
  EXPECT_EQ(err(), "header\n");
  EXPECT_TRUE(eventually_has("log", "lives on"));
  EXPECT_EQ(content(log), "first\nheader\na session of its own\nlives on\n");
}

TEST_F(Detach, AWorkThatEndsBeforeIsTheForegroundsEnd) {
  EXPECT_EQ(run([&](Background&) {
              write_all(STDERR_FILENO, "error: at once\n");
              return 65;
            }),
            65);
  EXPECT_EQ(err(), "error: at once\n");
  const std::string log = dir_ / "log";
  EXPECT_EQ(run([&](Background& self) {
              self.write_to(log);
              write_all(STDERR_FILENO, "error: later\n");
              unlink(log.c_str());
              return 74;
            }),
            74);
  EXPECT_EQ(err(), "error: later\n") << "of a log that is gone again";
  EXPECT_EQ(out(), "");
}

TEST_F(Detach, OneThatIsKilledIsTold) {
  EXPECT_EQ(run([&](Background&) { return raise(SIGKILL); }), 128 + SIGKILL);
  EXPECT_THAT(err(), HasSubstr("was killed by signal 9 before the run had begun"));
}

// Whether the process has taken the signal from its default, by blocking it.
bool hears(pid_t pid, int signal) {
  const std::string status = content(cat("/proc/", pid, "/status"));
  const size_t at = status.find("SigBlk:\t");
  return at != std::string::npos && (std::stoull(status.substr(at + 8), nullptr, 16) >> (signal - 1) & 1) != 0;
}

// Ctrl-C at a start that takes long.
TEST_F(Detach, ARequestToStopIsPassedOn) {
  EXPECT_EQ(run([&](Background&) {
              sigset_t term;
              sigemptyset(&term);
              sigaddset(&term, SIGTERM);
              sigprocmask(SIG_BLOCK, &term, nullptr);
              int number = 0;
              for (const Stopwatch watch; !hears(getppid(), SIGINT) && watch.seconds() < 10;) usleep(1000);
              kill(getppid(), SIGINT);
              sigwait(&term, &number);
              return 75;
            }),
            75);
}

}  // namespace
}  // namespace lockstep::launch
