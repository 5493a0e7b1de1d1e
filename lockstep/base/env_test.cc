#include "lockstep/base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

TEST(Env, UnsetAndEmptyAreNothing) {
  unsetenv("LOCKSTEP_TEST_VARIABLE");
  EXPECT_FALSE(env("LOCKSTEP_TEST_VARIABLE"));
  setenv("LOCKSTEP_TEST_VARIABLE", "", 1);
  EXPECT_FALSE(env("LOCKSTEP_TEST_VARIABLE"));
}

TEST(Env, NumbersAreChecked) {
  setenv("LOCKSTEP_TEST_VARIABLE", "12", 1);
  EXPECT_EQ(env_int("LOCKSTEP_TEST_VARIABLE", 0, 20), 12);
  EXPECT_THROW(env_int("LOCKSTEP_TEST_VARIABLE", 0, 11), ConfigError);
  setenv("LOCKSTEP_TEST_VARIABLE", "12x", 1);
  EXPECT_THROW(env_int("LOCKSTEP_TEST_VARIABLE", 0, 20), ConfigError);
}

TEST(Env, PinsToShares) {
  std::thread([] {
    const int before = usable_cores();
    pin_to_cores(1, 1);
    EXPECT_EQ(usable_cores(), 1);
    pin_to_cores(3, 1);  // of the one that is left
    EXPECT_EQ(usable_cores(), 1);
    EXPECT_GE(before, 1);
  }).join();
}

TEST(Env, ThisMachineHasACoreAndMemory) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_GT(available_memory(), 1u << 20);
}

}  // namespace
}  // namespace lockstep
