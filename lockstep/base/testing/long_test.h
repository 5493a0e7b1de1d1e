// Tests that are many variants of what others test, or take long: CI runs them, and who asks for them.
#pragma once

#include <gtest/gtest.h>

#include "lockstep/base/env.h"

namespace lockstep::testing_support {

inline bool runs_long_tests() {
  return env("LOCKSTEP_CI").value_or("") == "1" || env("LOCKSTEP_LONG").value_or("") == "1";
}

}  // namespace lockstep::testing_support

// The first line of such a test; `is_long`: whether this variant is one.
#define LOCKSTEP_LONG_TEST_IF(is_long)                              \
  if ((is_long) && !::lockstep::testing_support::runs_long_tests()) \
  GTEST_SKIP() << "takes long; LOCKSTEP_LONG=1 runs it, and CI does"
