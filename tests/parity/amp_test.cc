// Ranks whose machines were measured differently.
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <cstdlib>
#include <filesystem>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/amp/rates.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/train/auto_amp.h"
#include "support/worlds.h"

namespace lockstep::train {
namespace {

using testing_support::expect_ranks_pass;
using testing_support::join_world;

// Rank 0's machine is fastest in bf16, the other's in fp32.
RANK_PROGRAM(auto_amp) {
  const std::string cache = context.argument + "/" + std::to_string(context.rank);
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const double bf16 = context.rank == 0 ? 51 : 5;
  ASSERT_TRUE(amp::write_rates(amp::cache_folder(), {.fp32 = 10, .bf16 = bf16, .fp16 = 5}));
  const auto world = join_world(context);
  const ResolvedAmp resolved = resolve_amp(amp::HalfType::kBf16, DeviceKind::kCpu, *world);
  EXPECT_EQ(resolved.level, amp::AmpLevel::kO1);
  EXPECT_EQ(resolved.dtype, amp::HalfType::kBf16);
  EXPECT_EQ(resolved.why, "5.1 times fp32 here");
}
TEST(AutoAmp, AllRanksFollowRank0) {
  const std::string folder = testing::TempDir() + "auto_amp_of_ranks";
  expect_ranks_pass("auto_amp", 3, folder);
  std::filesystem::remove_all(folder);
}

RANK_PROGRAM(wrapped_before_initialize) {
  const auto world = join_world(context);
  torch::nn::Linear net(2, 2);
  const parallel::DistributedDataParallel ddp(net.ptr(), world);
  const auto sgd = optim::make_optimizer("sgd", net->parameters(), {});
  try {
    const amp::MixedPrecision mixed({net.get()}, {sgd.get()}, {.opt_level = amp::OptLevel::kO2});
    FAIL() << "it was taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("initialize first, then wrap"), std::string::npos) << error.what();
  }
  EXPECT_EQ(net->weight.scalar_type(), at::kFloat);
}
TEST(Amp, ComesBeforeDistributedDataParallel) { expect_ranks_pass("wrapped_before_initialize", 2); }

}  // namespace
}  // namespace lockstep::train
