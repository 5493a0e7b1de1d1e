#include "lockstep/comm/network/interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

using ::testing::HasSubstr;

TEST(Interfaces, TheLoopbackReachesThisMachine) {
  const auto chosen = choose_interfaces("", "127.0.0.1");
  ASSERT_EQ(chosen.size(), 1u);
  EXPECT_TRUE(chosen[0].loopback);
  EXPECT_EQ(chosen[0].address, "127.0.0.1");
  EXPECT_EQ(choose_interfaces(chosen[0].name + "," + chosen[0].name, "").size(), 2u);
}

TEST(Interfaces, AnUnknownOneIsAnErrorThatListsWhatThereIs) {
  try {
    choose_interfaces("lo,ib7", "127.0.0.1");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--interface ib7: this machine has no such interface that is up; it has "));
    EXPECT_THAT(error.what(), HasSubstr("127.0.0.1"));
  }
  EXPECT_THROW(choose_interfaces("", "no-such-host.invalid"), ConfigError);
}

}  // namespace
}  // namespace lockstep::comm
