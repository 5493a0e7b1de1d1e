#include "lockstep/world/seeds.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep {
namespace {

TEST(InitSeeds, RepeatsNumbersAndSetsTheFlags) {
  init_seeds(5, true);
  const at::Tensor first = at::randn({4});
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_TRUE(at::globalContext().deterministicCuDNN());
  EXPECT_FALSE(at::globalContext().benchmarkCuDNN());
  init_seeds(5, false);
  EXPECT_TRUE(at::equal(at::randn({4}), first));
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
  EXPECT_TRUE(at::globalContext().benchmarkCuDNN());
  init_seeds(6, false);
  EXPECT_FALSE(at::equal(at::randn({4}), first));
}

// Other threads may read it by then.
TEST(InitSeeds, LeavesTheEnvironmentAlone) {
  unsetenv("CUBLAS_WORKSPACE_CONFIG");
  init_seeds(5, true);
  EXPECT_EQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), nullptr);
}

}  // namespace
}  // namespace lockstep
