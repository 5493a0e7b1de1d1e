#include "lockstep/base/gpus.h"

#include <gtest/gtest.h>

#include "lockstep/base/testing/gpu.h"

namespace lockstep {
namespace {

TEST(Gpus, WithoutADriverThereAreNone) {
  EXPECT_EQ(gpus_of_driver("no-such-driver.so"), 0);
  EXPECT_EQ(gpus_of_driver("libc.so.6"), 0);
  if (!testing_support::has_gpu_file()) EXPECT_EQ(visible_gpus(), 0);
}

TEST(Gpus, OfARankIsThatOfItsLocalRankWhereAllAreSeen) {
  EXPECT_EQ(own_gpu(0, 1, 1), 0);
  EXPECT_EQ(own_gpu(3, 4, 4), 3);
  EXPECT_EQ(own_gpu(1, 2, 8), 1);
}

TEST(Gpus, OfARankThatSeesOneIsThatOne) { EXPECT_EQ(own_gpu(3, 4, 1), 0); }

TEST(Gpus, TooFewGiveNoneARank) {
  EXPECT_EQ(own_gpu(3, 4, 2), std::nullopt);
  EXPECT_EQ(own_gpu(0, 1, 0), std::nullopt);
}

}  // namespace
}  // namespace lockstep
