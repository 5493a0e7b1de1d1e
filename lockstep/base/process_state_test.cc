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
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  EXPECT_FALSE(process_stopped(child));
  EXPECT_EQ(process_state(child), '\0');
}

}  // namespace
}  // namespace lockstep
