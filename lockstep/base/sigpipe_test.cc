#include "lockstep/base/sigpipe.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep {
namespace {

TEST(SigpipeBlocked, AWriteToAClosedConnectionIsAnErrorAndLeavesNoSignalBehind) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  close(ends[1]);
  for (int i = 0; i < 2; ++i) {
    const SigpipeBlocked blocked;
    const SigpipeBlocked within;
    EXPECT_EQ(write(ends[0], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  sigset_t pending;
  sigpending(&pending);
  EXPECT_FALSE(sigismember(&pending, SIGPIPE));
  close(ends[0]);
}

}  // namespace
}  // namespace lockstep
