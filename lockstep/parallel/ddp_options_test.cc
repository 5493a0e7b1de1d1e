#include "lockstep/parallel/ddp_options.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

TEST(DdpOptions, RefusesWhatDoesNotGoTogether) {
  const auto hook = compress_hook(at::kHalf);
  EXPECT_NO_THROW(DdpOptions{}.check());
  EXPECT_THROW((DdpOptions{.buckets = {.wire = at::kBFloat16}, .comm_hook = hook}.check()), ConfigError);
  EXPECT_THROW((DdpOptions{.allreduce_always_fp32 = true, .comm_hook = hook}.check()), ConfigError);
  EXPECT_THROW(DdpOptions{.gradient_predivide_factor = 0}.check(), ConfigError);
  EXPECT_THROW((DdpOptions{.buckets = {.bucket_mb = 0}}.check()), ConfigError);
}

}  // namespace
}  // namespace lockstep::parallel
