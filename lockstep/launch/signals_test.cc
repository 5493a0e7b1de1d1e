#include "lockstep/launch/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::launch {
namespace {

TEST(SignalWatch, TurnsSignalsIntoEvents) {
  SignalWatch signals;
  EXPECT_FALSE(signals.next().has_value());
  kill(getpid(), SIGTERM);
  pollfd state{.fd = signals.descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&state, 1, 5000), 1);
  EXPECT_EQ(signals.next(), SIGTERM);
  EXPECT_FALSE(signals.next().has_value());
}

TEST(SignalWatch, IgnoredSignalsStayIgnored) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  {
    SignalWatch signals;
    kill(getpid(), SIGHUP);
    EXPECT_FALSE(signals.next().has_value());
  }
  ::signal(SIGHUP, before);
}

TEST(SignalWatch, LeavesTheMaskAndSigpipeAsTheyWere) {
  sigset_t before, after;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  {
    const SignalWatch signals;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    close(ends[0]);
    EXPECT_EQ(write(ends[1], "x", 1), -1) << "and this process lives";
    close(ends[1]);
  }
  sigprocmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
  struct sigaction pipe_action {};
  sigaction(SIGPIPE, nullptr, &pipe_action);
  EXPECT_EQ(pipe_action.sa_handler, SIG_DFL);
}

TEST(SignalWatch, KnowsOfChildrenEvenIfSigchldWasIgnored) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  {
    SignalWatch watch;
    const pid_t child = fork();
    if (child == 0) _exit(7);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 7);
    EXPECT_EQ(watch.next(), SIGCHLD);
  }
  EXPECT_EQ(::signal(SIGCHLD, before), SIG_IGN);
}

TEST(SignalWatch, StopsHereAsCtrlZDoes) {
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    SignalWatch watch;
    raise(SIGTSTP);
    if (watch.next() != SIGTSTP) _exit(1);
    watch.stop_here();
    _exit(42);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(WSTOPSIG(status), SIGTSTP) << "as the shell wants to see it";
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

}  // namespace
}  // namespace lockstep::launch
