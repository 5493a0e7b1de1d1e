#include "lockstep/base/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {
namespace {

TEST(ProcessState, ToldOfAStoppedProcess) {
  EXPECT_FALSE(process_stopped(getpid()));
  EXPECT_EQ(process_state(getpid()), 'R');
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(process_stopped(child));
  EXPECT_FALSE(process_ended(child));
  kill(child, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(process_ended(child)) << "its exit code is left";
  waitpid(child, &status, 0);
  EXPECT_TRUE(process_ended(child));
  EXPECT_FALSE(process_stopped(child));
  EXPECT_EQ(process_state(child), '\0');
}

TEST(ProcessState, IsAskedOfProcessesThatEndMeanwhile) {
  signal(SIGCHLD, SIG_IGN);  // no exit code is left
  for (int i = 0; i < 500; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    while (!process_fields(child).empty()) has_thread_in(child, "T");
    activity_of(child);
  }
  signal(SIGCHLD, SIG_DFL);
}

}  // namespace
}  // namespace lockstep
