#include "lockstep/parallel/comm_hook.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

TEST(CommHook, CompressionRoundsToItsType) {
  comm::SingleCommunicator comm;
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor gradient = at::randn({100}), rounded = gradient.to(type).to(at::kFloat);
    const auto hook = compress_hook(type);
    EXPECT_TRUE(hook->same_bits());
    EXPECT_EQ(hook->wire(), type);
    hook->begin({.index = 0, .label = "bucket", .gradients = {gradient}}, comm)->wait();
    EXPECT_TRUE(at::equal(gradient, rounded));
  }
  EXPECT_THROW(compress_hook(at::kDouble), ConfigError);
}

TEST(CommHook, AUsersOwnGetsTheBucket) {
  comm::SingleCommunicator comm;
  const auto hook = make_hook("twice", [](const GradBucket& bucket, comm::Communicator& world) {
    for (auto gradient : bucket.gradients) gradient.mul_(2);
    return world.fold(bucket.gradients, {.label = bucket.label});
  });
  const at::Tensor gradient = at::ones({3});
  hook->begin({.index = 0, .label = "bucket", .gradients = {gradient}}, comm)->wait();
  EXPECT_TRUE(at::equal(gradient, at::full({3}, 2.0f)));
  EXPECT_FALSE(hook->same_bits());
  const auto idle = make_hook("idle", [](const GradBucket&, comm::Communicator&) { return nullptr; });
  EXPECT_THROW(idle->begin({}, comm), BugError);
}

}  // namespace
}  // namespace lockstep::parallel
