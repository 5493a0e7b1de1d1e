#include "lockstep/base/host_name.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

namespace lockstep {
namespace {

TEST(HostName, IsTheKernels) {
  utsname kernel{};
  ASSERT_EQ(uname(&kernel), 0);
  EXPECT_EQ(host_name(), kernel.nodename);
}

}  // namespace
}  // namespace lockstep
