#include "lockstep/base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>

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

TEST(Env, ThisMachineHasACoreAndMemory) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_GT(available_memory(), 1u << 20);
  const auto limits = cgroup_limits();
  EXPECT_GT(limits.cpus.value_or(1), 0);
  EXPECT_GE(limits.memory.value_or(available_memory()), available_memory());
}

}  // namespace
}  // namespace lockstep
