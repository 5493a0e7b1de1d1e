#include "lockstep/base/stack_on_signal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace lockstep {
namespace {

TEST(StackOnSignal, NamesTheCallsAndGoesOn) {
  testing::internal::CaptureStderr();
  write_stack_on(SIGUSR2);
  raise(SIGUSR2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(testing::StartsWith("stack, "), testing::HasSubstr("lockstep_base_test")));
  signal(SIGUSR2, SIG_DFL);
}

}  // namespace
}  // namespace lockstep
