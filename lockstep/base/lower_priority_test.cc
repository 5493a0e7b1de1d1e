#include "lockstep/base/lower_priority.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace lockstep {
namespace {

int priority() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

TEST(LowerPriority, IsTheCallingThreadsAlone) {
  const int before = priority();
  int lowered = 0;
  std::thread([&] {
    lower_priority();
    lowered = priority();
  }).join();
  EXPECT_EQ(lowered, std::min(before + 10, 19));
  EXPECT_EQ(priority(), before);
}

}  // namespace
}  // namespace lockstep
