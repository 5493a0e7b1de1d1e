#include "lockstep/comm/plugins/nccl/gpu_of_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep::comm {
namespace {

using testing::HasSubstr;

TEST(GpuOfRank, IsThatOfItsLocalRankWhereAllAreSeen) {
  EXPECT_EQ(gpu_of_rank(0, 0, 1, 1), 0);
  EXPECT_EQ(gpu_of_rank(7, 3, 4, 4), 3);
  EXPECT_EQ(gpu_of_rank(7, 1, 2, 8), 1);
}

TEST(GpuOfRank, IsTheOnlyOneThatItSees) { EXPECT_EQ(gpu_of_rank(7, 3, 4, 1), 0); }

TEST(GpuOfRank, TooFewAreTheUsersMistake) {
  EXPECT_THROW(gpu_of_rank(3, 3, 4, 2), ConfigError);
  EXPECT_THAT(
      testing_support::refusal([] { gpu_of_rank(3, 3, 4, 2); }),
      HasSubstr(
          "rank 3: this node has 4 ranks and 2 GPUs; start fewer ranks, see nvidia-smi and CUDA_VISIBLE_DEVICES, or "
          "share them with --backend gloo"));
  EXPECT_THROW(gpu_of_rank(0, 0, 1, 0), ConfigError);
}

TEST(GpusOfTheirOwn, TwoRanksOnOneAreNamed) {
  EXPECT_NO_THROW(require_gpus_of_their_own({{"GPU-1", "a"}, {"GPU-2", "a"}, {"GPU-3", "b"}}));
  EXPECT_THAT(testing_support::refusal([] {
                require_gpus_of_their_own({{"GPU-1", "a"}, {"GPU-2", "a"}, {"GPU-1", "b"}});
              }),
              HasSubstr("ranks 0 and 2 have the same GPU (GPU-1 of b)"));
}

}  // namespace
}  // namespace lockstep::comm
