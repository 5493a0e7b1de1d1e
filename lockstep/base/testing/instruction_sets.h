// Tests of vector code with every instruction set that the code is compiled for and this machine has.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

namespace lockstep::testing_support {

// Calls act() once with each of them chosen, instead of with the best alone.
template <typename Act>
void with_each_instruction_set(const Act& act) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    act();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace lockstep::testing_support
