#include "lockstep/doctor/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::doctor {
namespace {

TEST(Machine, ThisOneHasWhatEveryOneHas) {
  const Machine machine = look_at_machine();
  EXPECT_GE(machine.cores, 1);
  EXPECT_THAT(machine.topology, testing::HasSubstr("NUMA node"));
  EXPECT_GE(machine.memory, machine.available);
  EXPECT_GT(machine.available, 0u);
  EXPECT_EQ(machine.memfd, "");
  ASSERT_THAT(machine.interfaces, testing::Not(testing::IsEmpty()));
  EXPECT_THAT(machine.interfaces, testing::Contains(testing::Field(&Interface::name, "lo")));
}

TEST(Machine, FeaturesHaveNames) {
  EXPECT_EQ(feature_names({}), "none");
  EXPECT_EQ(feature_names({.amx_bf16 = true, .avx512 = true}), "AMX-BF16, AVX-512");
}

}  // namespace
}  // namespace lockstep::doctor
