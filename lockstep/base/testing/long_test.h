// Tests that are many variants of what others test, or take long: they run where LOCKSTEP_LONG=1 asks for them, and in
// CI, by `./run test long`, in the time that is left.
#pragma once

#include <gtest/gtest.h>

#include "lockstep/base/env.h"

namespace lockstep::testing_support {

inline bool runs_long_tests() { return env("LOCKSTEP_LONG") == "1"; }

}  // namespace lockstep::testing_support

// The first line of such a test; `is_long`: whether this variant is one.
#define LOCKSTEP_LONG_TEST_IF(is_long)                              \
  if ((is_long) && !::lockstep::testing_support::runs_long_tests()) \
  GTEST_SKIP() << "takes long; LOCKSTEP_LONG=1 runs it, and ./run test long"
