#include "lockstep/base/sync_folder.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace {
int g_error = 0;   // of each fsync; 0: the system's own
int g_synced = 0;  // so many calls
}  // namespace

// The program's own comes before the C library's.
extern "C" int fsync(int fd) {
  ++g_synced;
  errno = g_error;
  return g_error == 0 ? static_cast<int>(syscall(SYS_fsync, fd)) : -1;
}

namespace lockstep {
namespace {

TEST(SyncFolder, TellsADiskThatFailsFromOneThatCannotSync) {
  for (const auto& [error, is_done] : {std::pair(0, true), std::pair(EINVAL, true), std::pair(EIO, false)}) {
    g_error = error;
    g_synced = 0;
    EXPECT_EQ(sync_folder("."), is_done) << error;
    EXPECT_EQ(g_synced, 1);
  }
  EXPECT_EQ(errno, EIO);
  EXPECT_TRUE(sync_folder("no/such/folder"));
  g_error = 0;
}

}  // namespace
}  // namespace lockstep
